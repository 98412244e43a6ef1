package hms_iceberg.bridge.views;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.ddl.Definitions;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.sql.IcebergCommand;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.SchemaUtils$;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** CREATE VIEW of an Iceberg view. The text of the query is kept, with what its names are looked for in. */
final class CreateIcebergView extends IcebergCommand {
  private final CreateView statement;

  CreateIcebergView(IcebergCatalog catalog, Identifier ident, CreateView statement) {
    super(catalog, ident, statement.output());
    this.statement = statement;
  }

  public List rows(SparkSession session) throws Exception {
    String name = catalog.name() + "." + TableName.text(ident);
    ViewReferences.refuseTemporary(session, name, statement.query());
    LogicalPlan query = session.sessionState().executePlan(statement.query(), CommandExecutionMode.SKIP()).analyzed();
    StructField[] found = query.schema().fields();
    List given = CollectionConverters.asJava(statement.userSpecifiedColumns());
    if (!given.isEmpty() && given.size() != found.length) {
      throw arityMismatch(name, given, found);
    }
    if (statement.replace()) {
      ViewReferences.refuseCycle(name, query);
    }
    ObjectNode question = catalog.source(ident).change("create-view");
    question.put("sql", (String) statement.originalText().get());
    question.put("replace", statement.replace());
    question.put("if_not_exists", statement.allowExisting());
    putDefaults(question, session.sessionState().catalogManager());
    putColumns(question, session, given, found);
    question.put("comment", statement.comment().isDefined() ? (String) statement.comment().get() : null);
    question.put("engine_version", org.apache.spark.package$.MODULE$.SPARK_VERSION());
    question.set("properties", Json.MAPPER.valueToTree(CollectionConverters.asJava(statement.properties())));
    change(question, ident);
    return Collections.emptyList();
  }

  private void putDefaults(ObjectNode question, CatalogManager catalogs) {
    String current = catalogs.currentCatalog().name();
    question.put("default_catalog", current.equals(catalog.name()) ? null : current);
    question.set("default_namespace", Json.MAPPER.valueToTree(catalogs.currentNamespace()));
  }

  private static void putColumns(ObjectNode question, SparkSession session, List given, StructField[] found) {
    ArrayNode columns = question.putArray("columns");
    ArrayNode queried = question.putArray("query_columns");
    List names = new ArrayList();
    for (int i = 0; i < found.length; i++) {
      Tuple2 column = given.isEmpty() ? null : (Tuple2) given.get(i);
      String name = column == null ? found[i].name() : (String) column._1();
      Option comment = column == null || !((Option) column._2()).isDefined() ? found[i].getComment() : (Option) column._2();
      columns.add(Definitions.column(
          name, found[i].dataType(), found[i].nullable(), comment.isDefined() ? (String) comment.get() : null));
      queried.add(found[i].name());
      names.add(name);
    }
    boolean caseSensitive = session.sessionState().conf().caseSensitiveAnalysis();
    SchemaUtils$.MODULE$.checkColumnNameDuplication(CollectionTools.seq(names), caseSensitive);
  }

  private static AnalysisException arityMismatch(String name, List given, StructField[] found) {
    List names = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      names.add(((Tuple2) given.get(i))._1());
    }
    Object parameters = ((scala.collection.immutable.Map) Map$.MODULE$.empty()).updated("viewName", name)
        .updated("viewColumns", String.join(", ", names))
        .updated("dataColumns", String.join(", ", new StructType(found).fieldNames()));
    String kind = given.size() > found.length ? "NOT_ENOUGH_DATA_COLUMNS" : "TOO_MANY_DATA_COLUMNS";
    return new AnalysisException(
        "CREATE_VIEW_COLUMN_ARITY_MISMATCH." + kind, (scala.collection.immutable.Map) parameters);
  }
}
