package hms_iceberg.bridge;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Finds the rows of one data file whose key a later commit deleted. */
final class EqualityFilter {
  private final Map newest;
  private final UnsafeProjection projection;
  private final ColumnarBatch keys;
  private final long sequenceNumber;

  EqualityFilter(Map newest, StructType columns, ColumnVector[] vectors, long sequenceNumber) {
    this.newest = newest;
    this.projection = Keys.projection(columns);
    this.keys = new ColumnarBatch(vectors);
    this.sequenceNumber = sequenceNumber;
  }

  void startBatch(int count) {
    keys.setNumRows(count);
  }

  boolean deletes(int row) {
    Long deleted = (Long) newest.get(projection.apply(keys.getRow(row)));
    return deleted != null && deleted.longValue() > sequenceNumber;
  }
}
