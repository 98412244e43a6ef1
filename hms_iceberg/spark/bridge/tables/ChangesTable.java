package hms_iceberg.bridge.tables;

import hms_iceberg.bridge.scan.ChangesScan;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What commits did to the rows of an Iceberg table: db.t.changes. */
final class ChangesTable implements SupportsRead {
  static final String NAME = "changes";

  private final ChangesScan.Described changes;

  ChangesTable(ChangesScan.Described changes) {
    this.changes = changes;
  }

  public String name() {
    return changes.name();
  }

  public StructType schema() {
    return changes.schema;
  }

  public Map properties() {
    return Collections.singletonMap("provider", "iceberg");
  }

  public Set capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new ChangesScan.Builder(changes, null);
  }

  public boolean equals(Object other) {
    return other instanceof ChangesTable && changes.question.equals(((ChangesTable) other).changes.question);
  }

  public int hashCode() {
    return changes.question.hashCode();
  }

  public String toString() {
    return "Iceberg " + name();
  }
}
