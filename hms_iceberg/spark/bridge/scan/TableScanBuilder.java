package hms_iceberg.bridge;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Takes what Spark asks of a table: conditions as they stand in the plan, and columns with those parts that are used. */
final class TableScanBuilder extends FilteredBuilder {
  private final IcebergTable table;
  private final CaseInsensitiveStringMap options;
  private List conditions = new ArrayList();
  private StructType required;

  TableScanBuilder(IcebergTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
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
        ? (Scan) new StreamedScan(table, table.schema(), options) : new TableScan(table, required, conditions, options);
  }
}
