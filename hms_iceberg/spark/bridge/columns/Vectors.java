package hms_iceberg.bridge.columns;

import hms_iceberg.bridge.wire.Hex;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns that show other columns differently. */
public final class Vectors {
  private Vectors() {}

  /** The same value in every row. */
  public static ConstantColumnVector constant(DataType type, Object value) {
    ConstantColumnVector vector = new ConstantColumnVector(1, type);
    if (value == null) {
      vector.setNull();
      return vector;
    }
    vector.setNotNull();
    if (value instanceof Boolean) {
      vector.setBoolean(((Boolean) value).booleanValue());
    } else if (value instanceof Integer) {
      vector.setInt(((Integer) value).intValue());
    } else if (value instanceof Long) {
      vector.setLong(((Long) value).longValue());
    } else if (value instanceof Float) {
      vector.setFloat(((Float) value).floatValue());
    } else if (value instanceof Double) {
      vector.setDouble(((Double) value).doubleValue());
    } else if (value instanceof UTF8String) {
      vector.setUtf8String((UTF8String) value);
    } else if (value instanceof byte[]) {
      vector.setBinary((byte[]) value);
    } else if (value instanceof Decimal) {
      vector.setDecimal((Decimal) value, ((DecimalType) type).precision());
    } else {
      throw new IllegalArgumentException("No constant column of " + type.sql() + " for " + value.getClass());
    }
    return vector;
  }

  /** A column of values of one kind, of which the rest is never asked for. */
  public abstract static class Readable extends ColumnVector {
    public Readable(DataType type) {
      super(type);
    }

    public void close() {}

    /** More are asked for only to skip a look at each row. */
    public int numNulls() {
      return hasNull() ? 1 : 0;
    }

    public boolean getBoolean(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public byte getByte(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public short getShort(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public int getInt(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public long getLong(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public float getFloat(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public double getDouble(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public ColumnarArray getArray(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public ColumnarMap getMap(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public Decimal getDecimal(int rowId, int precision, int scale) {
      throw new UnsupportedOperationException(type.sql());
    }

    public UTF8String getUTF8String(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public byte[] getBinary(int rowId) {
      throw new UnsupportedOperationException(type.sql());
    }

    public ColumnVector getChild(int ordinal) {
      throw new UnsupportedOperationException(type.sql());
    }
  }

  /** The positions of a batch's rows in the file. */
  public static final class Positions extends Readable {
    private long first;

    public Positions() {
      super(org.apache.spark.sql.types.LongType$.MODULE$);
    }

    public void set(long position) {
      first = position;
    }

    public boolean hasNull() {
      return false;
    }

    public boolean isNullAt(int rowId) {
      return false;
    }

    public long getLong(int rowId) {
      return first + rowId;
    }
  }

  /** Hands every question on to another column; subclasses say which row. */
  public abstract static class Delegating extends ColumnVector {
    final ColumnVector inner;

    public Delegating(DataType type, ColumnVector inner) {
      super(type);
      this.inner = inner;
    }

    public abstract int row(int rowId);

    public void close() {}

    public boolean hasNull() {
      return inner.hasNull();
    }

    public int numNulls() {
      return inner.numNulls();
    }

    public boolean isNullAt(int rowId) {
      return inner.isNullAt(row(rowId));
    }

    public boolean getBoolean(int rowId) {
      return inner.getBoolean(row(rowId));
    }

    public byte getByte(int rowId) {
      return inner.getByte(row(rowId));
    }

    public short getShort(int rowId) {
      return inner.getShort(row(rowId));
    }

    public int getInt(int rowId) {
      return inner.getInt(row(rowId));
    }

    public long getLong(int rowId) {
      return inner.getLong(row(rowId));
    }

    public float getFloat(int rowId) {
      return inner.getFloat(row(rowId));
    }

    public double getDouble(int rowId) {
      return inner.getDouble(row(rowId));
    }

    public ColumnarArray getArray(int rowId) {
      return inner.getArray(row(rowId));
    }

    public ColumnarMap getMap(int rowId) {
      return inner.getMap(row(rowId));
    }

    public Decimal getDecimal(int rowId, int precision, int scale) {
      return inner.getDecimal(row(rowId), precision, scale);
    }

    public UTF8String getUTF8String(int rowId) {
      return inner.getUTF8String(row(rowId));
    }

    public byte[] getBinary(int rowId) {
      return inner.getBinary(row(rowId));
    }

    public ColumnVector getChild(int ordinal) {
      return inner.getChild(ordinal);
    }
  }

  /** Some rows of a column: the i-th is the rows[i]-th of the other. */
  public static final class Selected extends Delegating {
    private final int[] rows;

    public Selected(ColumnVector inner, int[] rows) {
      super(inner.dataType(), inner);
      this.rows = rows;
    }

    public int row(int rowId) {
      return rows[rowId];
    }

    public ColumnVector getChild(int ordinal) {
      return new Selected(inner.getChild(ordinal), rows);
    }
  }

  /** Sixteen bytes as the text of a UUID. */
  static final class UuidVector extends Delegating {
    UuidVector(ColumnVector inner) {
      super(StringType$.MODULE$, inner);
    }

    public int row(int rowId) {
      return rowId;
    }

    public UTF8String getUTF8String(int rowId) {
      return inner.isNullAt(rowId) ? null : UTF8String.fromBytes(Hex.uuid(inner.getBinary(rowId)));
    }
  }

  /** A struct, list or map whose parts are views of the parts that were read. */
  public static final class NestedVector extends Delegating {
    private final WritableColumnVector read;
    private final ColumnVector[] children;

    public NestedVector(DataType type, WritableColumnVector read, ColumnVector[] children) {
      super(type, read);
      this.read = read;
      this.children = children;
    }

    public int row(int rowId) {
      return rowId;
    }

    public ColumnarArray getArray(int rowId) {
      return read.isNullAt(rowId)
          ? null : new ColumnarArray(children[0], read.getArrayOffset(rowId), read.getArrayLength(rowId));
    }

    public ColumnarMap getMap(int rowId) {
      return read.isNullAt(rowId) ? null : new ColumnarMap(
          children[0], children[1], read.getArrayOffset(rowId), read.getArrayLength(rowId));
    }

    public ColumnVector getChild(int ordinal) {
      return children[ordinal];
    }
  }

  /** A stored number, or if the file has none, one that follows from the row's position. */
  public static final class Inherited extends Delegating {
    private final ColumnVector positions;
    private final long first;

    /** Without positions the inherited number is the same for all rows. */
    public Inherited(ColumnVector stored, ColumnVector positions, long first) {
      super(org.apache.spark.sql.types.LongType$.MODULE$, stored);
      this.positions = positions;
      this.first = first;
    }

    public int row(int rowId) {
      return rowId;
    }

    public boolean hasNull() {
      return first < 0;
    }

    public int numNulls() {
      return first < 0 ? inner.numNulls() : 0;
    }

    public boolean isNullAt(int rowId) {
      return first < 0 && inner.isNullAt(rowId);
    }

    public long getLong(int rowId) {
      if (!inner.isNullAt(rowId)) {
        return inner.getLong(rowId);
      }
      return positions == null ? first : first + positions.getLong(rowId);
    }
  }
}
