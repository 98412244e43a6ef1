package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.scan.ChangesScan;
import hms_iceberg.bridge.stream.ChangesStream;
import hms_iceberg.bridge.wire.SparkVersions;
import hms_iceberg.bridge.wire.TableSource;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What follows CHANGES. Rows that were only copied, updates, and what came and went are found by Python, which compares
 * whole rows: Spark's own way needs ids of rows and versions of them, which tables before format version 3 lack.
 */
public final class IcebergChangelog implements Changelog {
  private final ChangesScan.Described changes;
  private final TableSource source;

  public IcebergChangelog(TableSource source, ObjectNode question, ChangelogContext context) {
    ObjectNode form = question.putObject("changelog");
    form.put("deduplication", context.deduplicationMode().value());
    form.put("compute_updates", context.computeUpdates());
    putRange(form.putObject("range"), context.range());
    this.source = source;
    this.changes = new ChangesScan.Described(source.planner, question);
  }

  private static void putRange(ObjectNode asked, ChangelogRange range) {
    if (range instanceof ChangelogRange.UnboundedRange) { // which has no bounds that could be inclusive
      asked.put("kind", "unbounded");
      return;
    }
    if (range instanceof ChangelogRange.VersionRange) {
      ChangelogRange.VersionRange versions = (ChangelogRange.VersionRange) range;
      asked.put("kind", "version");
      asked.put("start", versions.startingVersion());
      asked.put("end", (String) versions.endingVersion().orElse(null));
    } else if (range instanceof ChangelogRange.TimestampRange) {
      ChangelogRange.TimestampRange times = (ChangelogRange.TimestampRange) range;
      asked.put("kind", "timestamp");
      asked.put("start", times.startingTimestamp());
      asked.put("end", (Long) times.endingTimestamp().orElse(null));
    }
    asked.put("start_inclusive", range.startingBoundInclusive());
    asked.put("end_inclusive", range.endingBoundInclusive());
  }

  public String name() {
    return changes.name();
  }

  public Column[] columns() {
    return SparkVersions.columns(changes.schema);
  }

  public boolean containsCarryoverRows() {
    return false;
  }

  public boolean containsIntermediateChanges() {
    return false;
  }

  public boolean representsUpdateAsDeleteAndInsert() {
    return false;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    ChangesScan.Described read = changes.with(options);
    return new ChangesScan.Builder(read, new ChangesStream.Maker(read, source));
  }

  public boolean equals(Object other) {
    return other instanceof IcebergChangelog && changes.question.equals(((IcebergChangelog) other).changes.question);
  }

  public int hashCode() {
    return changes.question.hashCode();
  }

  public String toString() {
    return "Iceberg " + name();
  }
}
