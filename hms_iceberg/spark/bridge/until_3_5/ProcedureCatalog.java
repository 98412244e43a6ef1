package hms_iceberg.bridge;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;

/** A catalog with procedures, of which Spark 3.5 knows nothing: {@link CallStatement} asks for them. */
interface ProcedureCatalog extends CatalogPlugin {
  UnboundProcedure loadProcedure(Identifier ident);
}
