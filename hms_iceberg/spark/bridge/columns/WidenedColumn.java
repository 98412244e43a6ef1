package hms_iceberg.bridge.columns;

import org.apache.parquet.schema.Type;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A column whose type was widened after its file was written: Spark's reader widens it. Spark 3.5 has a file of its own. */
public final class WidenedColumn {
  private WidenedColumn() {}

  /** The type as which Spark's reader of Parquet can read a column that is wanted as this one. */
  public static DataType typeToRead(DataType wanted, Type type) {
    return wanted;
  }

  /** How a wanted column is made of what was read with `typeToRead`. */
  public static ColumnView of(DataType wanted, DataType read) {
    return ColumnView.same();
  }

  /** A batch whose vectors are those. */
  public static ColumnarBatch copied(ColumnarBatch made) {
    return made;
  }
}
