package hms_iceberg.bridge.until_3_5;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;

/** A catalog with procedures, of which Spark 3.5 knows nothing: {@link CallStatement} asks for them. */
public interface ProcedureCatalog extends CatalogPlugin {
  UnboundProcedure loadProcedure(Identifier ident);
}
