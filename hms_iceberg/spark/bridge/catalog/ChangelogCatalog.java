package hms_iceberg.bridge.catalog;

import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;

/** Spark before 4.2 knows no changes of tables. */
abstract class ChangelogCatalog extends DelegatingCatalogExtension {}
