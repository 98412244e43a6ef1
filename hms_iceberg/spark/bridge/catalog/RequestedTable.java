package hms_iceberg.bridge.catalog;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;

/** A table as the options of a reader or writer name it, and what else they say of it; Spark hands it to the catalog. */
public final class RequestedTable implements Identifier {
  private final Identifier ident;
  private final String path;
  private final Map options;

  public RequestedTable(Identifier ident, String path, Map options) {
    this.ident = ident;
    this.path = path;
    this.options = options;
  }

  public Table load(String version, Long asOfMicros) {
    return TableReads.load(path, version, asOfMicros, options);
  }

  public String[] namespace() {
    return ident.namespace();
  }

  public String name() {
    return ident.name();
  }

  public String toString() {
    return path;
  }
}
