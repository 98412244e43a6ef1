package hms_iceberg.bridge.scan;

import hms_iceberg.bridge.conditions.SimpleFirst;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes what Spark asks of a table: conditions as they stand in the plan, columns with those parts that are used, and how
 * many rows.
 */
public final class TableScanBuilder extends FilteredBuilder implements SupportsPushDownLimit {
  private final DescribedTable table;
  private final StreamMaker streams;
  private final RowChange change;
  private List conditions = new ArrayList();
  private StructType required;
  private int limit = TableScan.NO_LIMIT;

  /**
   * For a query or a stream, or for a statement that changes rows.
   *
   * @param streams null for such a statement
   * @param change null for others
   */
  public TableScanBuilder(DescribedTable table, StreamMaker streams, RowChange change) {
    this.table = table;
    this.streams = streams;
    this.change = change;
  }

  /** Those are left to Spark that the partition of a file does not answer for all of its rows. */
  public Seq pushFilters(Seq filters) {
    if (change != null && change.replacesFiles()) {
      return filters;
    }
    conditions = SimpleFirst.of(CollectionConverters.asJava(filters));
    List ofRows = new ArrayList(conditions);
    ofRows.removeAll(ScanQuestion.on(conditions, table.identityColumns()));
    return CollectionTools.seq(ofRows);
  }

  public Predicate[] pushedFilters() {
    return new Predicate[0];
  }

  /** Any rows will do: Spark asks only if it has no condition left to test. */
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  /** Files are left out, no rows of a file: Spark counts again. */
  public boolean isPartiallyPushed() {
    return true;
  }

  public void pruneColumns(StructType columns) {
    required = columns;
  }

  /** Who asks before columns are chosen wants to know how large the table is, or begins a stream. */
  public Scan build() {
    if (required == null) {
      return streams == null ? (Scan) table.estimate() : streams.scan();
    }
    return new TableScan(table, required, conditions, limit, streams, change);
  }
}
