package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.scan.WorkerFiles;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.Planner;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What commits did to the rows of an Iceberg table: db.t.changes. PlanScans puts what Python reads in its place. */
public final class ChangesTable implements SupportsRead {
  static final String NAME = "changes";

  private final Planner planner;
  private final ObjectNode question;
  private final StructType idSchema;
  private final StructType schema;
  private final long size;

  /** The question is that which loads a table. */
  ChangesTable(Planner planner, ObjectNode question) {
    this.planner = planner;
    this.question = question;
    question.put("call", "changes");
    JsonNode described = planner.ask(question).header();
    this.idSchema = UnsupportedTypes.parse(described.get("schema"));
    this.size = described.get("size_in_bytes").asLong();
    this.schema = DescribedTable.withoutIds(idSchema);
  }

  /** The rows, with some of the columns. */
  public LogicalPlan rows(List used, SparkSession session) {
    ObjectNode asked = (ObjectNode) question.deepCopy();
    asked.put("call", "changed-rows");
    ArrayNode columns = asked.putArray("columns");
    StructField[] read = new StructField[used.size()];
    for (int i = 0; i < read.length; i++) {
      read[i] = idSchema.apply(((Attribute) used.get(i)).name());
      columns.add(read[i].name());
    }
    UnsupportedTypes.refuse(name(), new StructType(read));
    Answer answer = planner.ask(asked);
    WorkerFiles files = new WorkerFiles("iceberg " + name(), 1, answer, false);
    return files.plan(session, planner, answer.takeBlobs(1)[0], used);
  }

  public String name() {
    return question.get("name").asText() + "." + NAME;
  }

  public StructType schema() {
    return schema;
  }

  public Map properties() {
    return Collections.singletonMap("provider", "iceberg");
  }

  public Set capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new DescribedTable.Estimate(schema, size, null);
  }

  public boolean equals(Object other) {
    return other instanceof ChangesTable && question.equals(((ChangesTable) other).question);
  }

  public int hashCode() {
    return question.hashCode();
  }

  public String toString() {
    return "Iceberg " + name();
  }
}
