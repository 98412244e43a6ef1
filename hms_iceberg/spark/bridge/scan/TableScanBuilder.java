package hms_iceberg.bridge.scan;

import hms_iceberg.bridge.conditions.SimpleFirst;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Takes what Spark asks of a table: conditions as they stand in the plan, and columns with those parts that are used. */
public final class TableScanBuilder extends FilteredBuilder {
  private final DescribedTable table;
  private final StreamMaker streams;
  private List conditions = new ArrayList();
  private StructType required;

  public TableScanBuilder(DescribedTable table, StreamMaker streams) {
    this.table = table;
    this.streams = streams;
  }

  /** Those are left to Spark that the partition of a file does not answer for all of its rows. */
  public Seq pushFilters(Seq filters) {
    conditions = SimpleFirst.of(CollectionConverters.asJava(filters));
    List ofRows = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      if (!ScanQuestion.isOn((Expression) conditions.get(i), table.identityColumns())) {
        ofRows.add(conditions.get(i));
      }
    }
    return CollectionTools.seq(ofRows);
  }

  public Predicate[] pushedFilters() {
    return new Predicate[0];
  }

  public void pruneColumns(StructType columns) {
    required = columns;
  }

  /** Who asks before columns are chosen wants to know how large the table is, or begins a stream. */
  public Scan build() {
    return required == null
        ? streams.scan() : new TableScan(table, required, conditions, streams);
  }
}
