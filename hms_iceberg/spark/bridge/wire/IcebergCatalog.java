package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;

/** A catalog in which there are Iceberg tables. */
public interface IcebergCatalog {
  String name();

  /** An Iceberg table (db.t), or what is told of one by its metadata (db.t.files); null for anything else. */
  Table load(Identifier ident, String version, Long asOfMicros, Map options);

  /** Where a table (db.t) is found or is to be. */
  TableSource source(Identifier ident);

  /** What Python calls this catalog, which is opened when this is first asked. */
  JsonNode number();
}
