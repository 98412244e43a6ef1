package hms_iceberg.bridge.table;

import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableChange;

/** A table whose columns may change with what is written into it: Spark asks which changes it can make. */
abstract class EvolvingTable implements SupportsSchemaEvolution {
  public abstract boolean mayChange(TableChange.ColumnChange change);

  public boolean supportsColumnChange(TableChange.ColumnChange change) {
    return mayChange(change);
  }
}
