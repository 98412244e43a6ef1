package hms_iceberg.bridge.catalog;

import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.tables.IcebergChangelog;
import hms_iceberg.bridge.tables.TableVersions;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Pointer;
import hms_iceberg.bridge.wire.TableSource;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Finds the changes of a table (db.t), or of one of its branches (db.t.branch_b). */
final class Changelogs {
  /** The options that choose what changes there are; Spark 4.3 hands others to what reads them. */
  static final Set OPTIONS = new HashSet(Arrays.asList(new String[] {
    "identifier-columns", "branch", "tag", "snapshot-id", "as-of-timestamp"
  }));

  private Changelogs() {}

  /** Null if there is no such Iceberg table. */
  static Changelog load(
      IcebergCatalog catalog, Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options) {
    String[] parts = ident.namespace();
    if (parts.length != 1 && parts.length != 2) {
      return null;
    }
    TableSource source = catalog.source(
        parts.length == 2 ? new TableName(new String[] {parts[0]}, parts[1]) : ident);
    Pointer pointer = SessionCatalog.pinned(source);
    if (pointer == null) {
      return null;
    }
    if (pointer.isView) {
      throw Failures.of("UnsupportedError: cannot read the changes of " + source.name() + ", which is a view. Read those"
          + " of the tables that it reads.", null);
    }
    String part = parts.length == 2 ? ident.name() : null;
    return new IcebergChangelog(
        source, TableVersions.changes(source, pointer.location, part, new HashMap(options)), context);
  }
}
