package hms_iceberg.bridge.catalog;

import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A session catalog that knows the changes of Iceberg tables, and of others what the catalog below it knows. */
abstract class ChangelogCatalog extends DelegatingCatalogExtension {
  public Set changelogStateOptionKeys() {
    return Changelogs.OPTIONS;
  }

  public Changelog loadChangelog(Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    Changelog changes = Changelogs.load((IcebergCatalog) this, ident, context, options);
    if (changes != null) {
      return changes;
    }
    loadTable(ident); // there may be none
    return ((TableCatalog) delegate).loadChangelog(ident, context, options);
  }
}
