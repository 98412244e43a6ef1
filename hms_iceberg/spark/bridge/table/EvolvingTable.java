package hms_iceberg.bridge.table;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;

/** A table whose columns may change with what is written into it. Spark before 4.2 tries whatever the rows need. */
abstract class EvolvingTable implements Table {
  /** Whether a change that the rows of a statement need is one that the table can make. */
  public abstract boolean mayChange(TableChange.ColumnChange change);
}
