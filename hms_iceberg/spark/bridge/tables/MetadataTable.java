package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.scan.MetadataScan;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Planner;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What the metadata of an Iceberg table says, as rows: db.t.files, db.t.snapshots and so on. */
final class MetadataTable implements SupportsRead {
  private final Planner planner;
  private final ObjectNode question;
  /** With what Spark cannot hold marked. */
  private final StructType known;
  private final StructType schema;

  /** The question is that which loads a table, and the kind of metadata. */
  MetadataTable(Planner planner, ObjectNode question, String kind) {
    this.planner = planner;
    this.question = question;
    question.put("call", "inspect");
    question.put("kind", kind);
    JsonNode described = planner.ask(question).header();
    question.set("snapshot_id", described.get("snapshot_id"));
    this.known = UnsupportedTypes.parse(described.get("schema"));
    this.schema = DescribedTable.withoutIds(known);
  }

  public String name() {
    return question.get("name").asText() + "." + question.get("kind").asText();
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
    return new MetadataScan(planner, name(), question, known);
  }

  public boolean equals(Object other) {
    return other instanceof MetadataTable && question.equals(((MetadataTable) other).question);
  }

  public int hashCode() {
    return question.hashCode();
  }

  public String toString() {
    return "Iceberg " + name();
  }
}
