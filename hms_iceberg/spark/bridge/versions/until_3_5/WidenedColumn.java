package hms_iceberg.bridge.columns;

import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.FloatType$;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A column whose type was widened after its file was written: Spark reads it as the file's type until 3.5. */
public final class WidenedColumn extends ColumnView {
  private static final long MICROS_OF_A_DAY = 86400000000L;

  private final DataType wanted;

  private WidenedColumn(DataType wanted) {
    this.wanted = wanted;
  }

  /** The type that Spark can read of what is wanted. */
  public static DataType typeToRead(DataType wanted, Type type) {
    if (!type.isPrimitive()) {
      return wanted;
    }
    PrimitiveType.PrimitiveTypeName stored = type.asPrimitiveType().getPrimitiveTypeName();
    LogicalTypeAnnotation annotation = type.getLogicalTypeAnnotation();
    boolean isInt = stored == PrimitiveType.PrimitiveTypeName.INT32;
    if (wanted instanceof LongType && isInt) {
      return IntegerType$.MODULE$;
    }
    if (wanted instanceof DoubleType && stored == PrimitiveType.PrimitiveTypeName.FLOAT) {
      return FloatType$.MODULE$;
    }
    if (wanted instanceof TimestampNTZType && isInt) {
      return DateType$.MODULE$;
    }
    if (wanted instanceof DecimalType && annotation instanceof LogicalTypeAnnotation.DecimalLogicalTypeAnnotation
        && (isInt || stored == PrimitiveType.PrimitiveTypeName.INT64)) {
      LogicalTypeAnnotation.DecimalLogicalTypeAnnotation decimal =
          (LogicalTypeAnnotation.DecimalLogicalTypeAnnotation) annotation;
      return new DecimalType(decimal.getPrecision(), decimal.getScale());
    }
    return wanted;
  }

  public static ColumnView of(DataType wanted, DataType read) {
    boolean widened = wanted instanceof LongType && read instanceof IntegerType
        || wanted instanceof DoubleType && read instanceof FloatType
        || wanted instanceof TimestampNTZType && read instanceof DateType
        || wanted instanceof DecimalType && !wanted.equals(read);
    return widened ? (ColumnView) new WidenedColumn(wanted) : ColumnView.same();
  }

  public ColumnVector of(ColumnVector read) {
    return new Vector(wanted, read);
  }

  /** The batch with copies of the widened columns, since code that Spark generates may insist on its own vectors. */
  public static ColumnarBatch copied(ColumnarBatch batch) {
    ColumnVector[] vectors = null;
    for (int i = 0; i < batch.numCols(); i++) {
      if (batch.column(i) instanceof Vector) {
        vectors = vectors == null ? columns(batch) : vectors;
        vectors[i] = ((Vector) batch.column(i)).copy(batch.numRows());
      }
    }
    return vectors == null ? batch : new ColumnarBatch(vectors, batch.numRows());
  }

  private static ColumnVector[] columns(ColumnarBatch batch) {
    ColumnVector[] vectors = new ColumnVector[batch.numCols()];
    for (int i = 0; i < vectors.length; i++) {
      vectors[i] = batch.column(i);
    }
    return vectors;
  }

  static final class Vector extends Vectors.Delegating {
    private final boolean isTime;

    Vector(DataType wanted, ColumnVector inner) {
      super(wanted, inner);
      this.isTime = wanted instanceof TimestampNTZType;
    }

    public int row(int rowId) {
      return rowId;
    }

    public ColumnVector copy(int count) {
      OnHeapColumnVector copy = new OnHeapColumnVector(count, dataType());
      for (int i = 0; i < count; i++) {
        if (inner.isNullAt(i)) {
          copy.putNull(i);
        } else if (dataType() instanceof DecimalType) {
          DecimalType type = (DecimalType) dataType();
          copy.putDecimal(i, getDecimal(i, type.precision(), type.scale()), type.precision());
        } else if (dataType() instanceof DoubleType) {
          copy.putDouble(i, getDouble(i));
        } else {
          copy.putLong(i, getLong(i));
        }
      }
      return copy;
    }

    public long getLong(int rowId) {
      return isTime ? Math.multiplyExact((long) inner.getInt(rowId), MICROS_OF_A_DAY) : inner.getInt(rowId);
    }

    public double getDouble(int rowId) {
      return inner.getFloat(rowId);
    }

    public Decimal getDecimal(int rowId, int precision, int scale) {
      if (inner.isNullAt(rowId)) {
        return null;
      }
      DecimalType stored = (DecimalType) inner.dataType();
      Decimal value = inner.getDecimal(rowId, stored.precision(), stored.scale());
      value.changePrecision(precision, scale);
      return value;
    }
  }
}
