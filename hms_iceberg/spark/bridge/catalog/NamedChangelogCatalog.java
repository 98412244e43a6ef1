package hms_iceberg.bridge.catalog;

import org.apache.spark.sql.connector.catalog.TableCatalog;

/** The same for catalogs of other metastores. */
abstract class NamedChangelogCatalog implements TableCatalog {}
