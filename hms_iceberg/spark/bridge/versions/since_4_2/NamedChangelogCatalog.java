package hms_iceberg.bridge.catalog;

import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog of Iceberg tables alone that knows their changes. */
abstract class NamedChangelogCatalog implements TableCatalog {
  public Set changelogStateOptionKeys() {
    return Changelogs.OPTIONS;
  }

  public Changelog loadChangelog(Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    Changelog changes = Changelogs.load((IcebergCatalog) this, ident, context, options);
    if (changes == null) {
      throw new NoSuchTableException(ident);
    }
    return changes;
  }
}
