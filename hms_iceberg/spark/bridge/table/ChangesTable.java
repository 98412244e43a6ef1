package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
import scala.jdk.javaapi.CollectionConverters;

/** What commits did to the rows of an Iceberg table: db.t.changes. PlanScans puts what Python reads in its place. */
final class ChangesTable implements SupportsRead {
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
    this.schema = IcebergTable.withoutIds(idSchema);
  }

  /** The rows of a scan of such a table, with the columns that it uses. */
  static LogicalPlan rows(Scan scan, SparkSession session) {
    List used = scan.columns();
    if (used.isEmpty()) { // they are only counted
      List all = CollectionConverters.asJava(scan.relation.output());
      used = Collections.singletonList(all.get(all.size() - 1));
    }
    return ((ChangesTable) scan.relation.table()).rows(used, session);
  }

  private LogicalPlan rows(List used, SparkSession session) {
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
    return new IcebergTable.Estimate(schema, size, null);
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
