package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.CachedTables;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.Values;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** One procedure of a catalog: Spark brings the arguments into order and type, Python does the work. */
public final class CatalogProcedure implements UnboundProcedure, BoundProcedure {
  private final IcebergCatalog catalog;
  private final JsonNode description;
  private final ProcedureParameter[] parameters;

  CatalogProcedure(IcebergCatalog catalog, JsonNode description) {
    this.catalog = catalog;
    this.description = description;
    JsonNode named = description.get("parameters");
    this.parameters = new ProcedureParameter[named.size()];
    for (int i = 0; i < parameters.length; i++) {
      JsonNode parameter = Json.at(named, i);
      DataType type = DataType.fromDDL(parameter.get("type").asText());
      String byDefault = parameter.get("required").asBoolean() ? null : "NULL";
      parameters[i] = Generation.parameter(parameter.get("name").asText(), type, byDefault);
    }
  }

  public String name() {
    return description.get("name").asText();
  }

  public String description() {
    return "Iceberg's procedure " + name();
  }

  public BoundProcedure bind(StructType arguments) {
    return this;
  }

  public ProcedureParameter[] parameters() {
    return (ProcedureParameter[]) Arrays.copyOf(parameters, parameters.length);
  }

  public boolean isDeterministic() {
    return false;
  }

  public Iterator call(InternalRow arguments) {
    SparkSession session = (SparkSession) SparkSession.active();
    boolean onlyReads = description.get("only_reads").asBoolean();
    ObjectNode question = Planner.question(onlyReads ? "read-by-procedure" : "call-procedure");
    ObjectNode given = Json.MAPPER.createObjectNode();
    for (int i = 0; i < parameters.length; i++) {
      if (!arguments.isNullAt(i)) {
        DataType type = parameters[i].dataType();
        given.set(parameters[i].name(), Values.json(type, arguments.get(i, type)));
      }
    }
    Identifier table = null;
    if (given.has("table")) {
      table = TableArgument.resolve(session, catalog, given.get("table").asText());
      catalog.source(table).addTarget(question);
      if (given.has("where") && description.get("resolves_where").asBoolean()) {
        String name = TableArgument.qualified((CatalogPlugin) catalog, table);
        given.set("where", WhereArgument.resolve(session, name, given.get("where").asText()));
      }
    }
    if (given.has("file_list_view")) {
      given.set("file_list_view", FileListArgument.resolve(session, given.get("file_list_view").asText()));
    }
    question.put("procedure", name());
    question.set("catalog", catalog.number());
    question.set("current_namespace", Json.MAPPER.valueToTree(TableArgument.currentNamespace(session, catalog)));
    question.set("arguments", given);
    Answer answer = answer(session, question);
    if (answer.header().has("rewrite")) {
      try {
        answer = new GroupRewrites(session, Extension.activePlanner(), answer.header().get("rewrite")).finished();
      } finally {
        CachedTables.refresh(question); // groups that are done are committed, whatever becomes of others
      }
    }
    if (answer.header().has("view")) {
      ChangesView.create(session, catalog, table, answer.header().get("view"));
    }
    return Collections.singletonList(result(answer.header().get("rows"))).iterator();
  }

  private Answer answer(SparkSession session, ObjectNode question) {
    Planner planner = Extension.activePlanner();
    Answer answer;
    try {
      answer = planner.ask(question);
    } finally {
      if ("ends".equals(description.get("transaction").asText())) {
        planner.transactions.end(session); // whatever became of it
      }
    }
    JsonNode transaction = answer.header().get("transaction");
    if (transaction == null) {
      return answer;
    }
    if (transaction.hasNonNull("open")) {
      planner.transactions.begin(session, transaction.get("open"), planner);
    }
    JsonNode names = transaction.get("changed");
    for (int i = 0; i < names.size(); i++) {
      JsonNode name = Json.at(names, i);
      ObjectNode changed = Planner.question(name());
      changed.set("namespace", Json.at(name, 0));
      changed.set("table", Json.at(name, 1));
      CachedTables.refresh(changed);
    }
    return answer;
  }

  public StructType columns() {
    return StructType.fromDDL(description.get("columns").asText());
  }

  private Result result(JsonNode rows) {
    StructType schema = columns();
    StructField[] columns = schema.fields();
    InternalRow[] converted = new InternalRow[rows.size()];
    for (int i = 0; i < converted.length; i++) {
      Object[] values = new Object[columns.length];
      for (int j = 0; j < values.length; j++) {
        values[j] = Values.of(columns[j].dataType(), Json.at(Json.at(rows, i), j));
      }
      converted[i] = new GenericInternalRow(values);
    }
    return new Result(schema, converted);
  }

  static final class Result implements LocalScan {
    private final StructType schema;
    private final InternalRow[] rows;

    Result(StructType schema, InternalRow[] rows) {
      this.schema = schema;
      this.rows = rows;
    }

    public StructType readSchema() {
      return schema;
    }

    public InternalRow[] rows() {
      return rows;
    }
  }
}
