package hms_iceberg.bridge.orc;

import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.wire.Hex;
import java.math.BigDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns of ORC's batches as Spark's. ORC refills its vectors batch by batch; these show what is in them. */
final class OrcVectors {
  private static final long MICROS_PER_DAY = 86400000000L;

  private OrcVectors() {}

  /** What all have in common: where a row is, and whether it is null. */
  public abstract static class Column extends Vectors.Readable {
    private final org.apache.hadoop.hive.ql.exec.vector.ColumnVector read;

    public Column(DataType type, org.apache.hadoop.hive.ql.exec.vector.ColumnVector read) {
      super(type);
      this.read = read;
    }

    public final int at(int rowId) {
      return read.isRepeating ? 0 : rowId;
    }

    public boolean hasNull() {
      return !read.noNulls;
    }

    public boolean isNullAt(int rowId) {
      return !read.noNulls && read.isNull[at(rowId)];
    }
  }

  /** Whole numbers, truths, and days. */
  public static final class Whole extends Column {
    private final LongColumnVector read;

    public Whole(DataType type, LongColumnVector read) {
      super(type, read);
      this.read = read;
    }

    public boolean getBoolean(int rowId) {
      return read.vector[at(rowId)] != 0;
    }

    public int getInt(int rowId) {
      return (int) read.vector[at(rowId)];
    }

    public long getLong(int rowId) {
      return read.vector[at(rowId)];
    }
  }

  /** Whole numbers in another unit, such as days as microseconds. */
  public static final class Multiplied extends Column {
    private final LongColumnVector read;
    private final long factor;

    Multiplied(DataType type, LongColumnVector read, long factor) {
      super(type, read);
      this.read = read;
      this.factor = factor;
    }

    public static Multiplied days(DataType type, LongColumnVector read) {
      return new Multiplied(type, read, MICROS_PER_DAY);
    }

    public long getLong(int rowId) {
      return Math.multiplyExact(read.vector[at(rowId)], factor);
    }
  }

  static final class Floating extends Column {
    private final DoubleColumnVector read;

    Floating(DataType type, DoubleColumnVector read) {
      super(type, read);
      this.read = read;
    }

    public float getFloat(int rowId) {
      return (float) read.vector[at(rowId)];
    }

    public double getDouble(int rowId) {
      return read.vector[at(rowId)];
    }
  }

  /** Times in microseconds: milliseconds are part of both of ORC's numbers. */
  public static final class Time extends Column {
    private final TimestampColumnVector read;

    public Time(DataType type, TimestampColumnVector read) {
      super(type, read);
      this.read = read;
    }

    public long getLong(int rowId) {
      int at = at(rowId);
      return read.time[at] * 1000 + read.nanos[at] / 1000 % 1000;
    }
  }

  public static final class Bytes extends Column {
    private final BytesColumnVector read;

    public Bytes(DataType type, BytesColumnVector read) {
      super(type, read);
      this.read = read;
    }

    public UTF8String getUTF8String(int rowId) {
      int at = at(rowId);
      return isNullAt(rowId) ? null : UTF8String.fromBytes(read.vector[at], read.start[at], read.length[at]);
    }

    public byte[] getBinary(int rowId) {
      if (isNullAt(rowId)) {
        return null;
      }
      int at = at(rowId);
      byte[] bytes = new byte[read.length[at]];
      System.arraycopy(read.vector[at], read.start[at], bytes, 0, bytes.length);
      return bytes;
    }
  }

  /** Sixteen bytes as the text of a UUID. */
  public static final class Uuid extends Column {
    private final Bytes read;

    public Uuid(BytesColumnVector read) {
      super(StringType$.MODULE$, read);
      this.read = new Bytes(StringType$.MODULE$, read);
    }

    public UTF8String getUTF8String(int rowId) {
      byte[] bytes = read.getBinary(rowId);
      return bytes == null ? null : UTF8String.fromBytes(Hex.uuid(bytes));
    }
  }

  /** Decimals of at most 18 digits, whose digits are a whole number. */
  public static final class Digits extends Column {
    private final LongColumnVector read;
    private final int scale;

    public Digits(DataType type, LongColumnVector read, int scale) {
      super(type, read);
      this.read = read;
      this.scale = scale;
    }

    public Decimal getDecimal(int rowId, int precision, int wantedScale) {
      if (isNullAt(rowId)) {
        return null;
      }
      long digits = read.vector[at(rowId)];
      return wantedScale == scale && precision <= 18 ? Decimal.createUnsafe(digits, precision, scale)
          : Decimal.apply(BigDecimal.valueOf(digits, scale), precision, wantedScale);
    }
  }

  public static final class Decimals extends Column {
    private final DecimalColumnVector read;

    public Decimals(DataType type, DecimalColumnVector read) {
      super(type, read);
      this.read = read;
    }

    public Decimal getDecimal(int rowId, int precision, int scale) {
      return isNullAt(rowId) ? null : Decimal.apply(
          read.vector[at(rowId)].getHiveDecimal().bigDecimalValue(), precision, scale);
    }
  }

  /** ORC marks the fields of a struct that is null as null, too. */
  public static final class Struct extends Column {
    private final ColumnVector[] children;

    public Struct(DataType type, StructColumnVector read, ColumnVector[] children) {
      super(type, read);
      this.children = children;
    }

    public ColumnVector getChild(int ordinal) {
      return children[ordinal];
    }
  }

  public static final class Lists extends Column {
    private final ListColumnVector read;
    private final ColumnVector element;

    public Lists(DataType type, ListColumnVector read, ColumnVector element) {
      super(type, read);
      this.read = read;
      this.element = element;
    }

    public ColumnarArray getArray(int rowId) {
      int at = at(rowId);
      return isNullAt(rowId) ? null : new ColumnarArray(element, (int) read.offsets[at], (int) read.lengths[at]);
    }
  }

  public static final class Maps extends Column {
    private final MapColumnVector read;
    private final ColumnVector keys;
    private final ColumnVector values;

    public Maps(DataType type, MapColumnVector read, ColumnVector keys, ColumnVector values) {
      super(type, read);
      this.read = read;
      this.keys = keys;
      this.values = values;
    }

    public ColumnarMap getMap(int rowId) {
      int at = at(rowId);
      return isNullAt(rowId) ? null : new ColumnarMap(keys, values, (int) read.offsets[at], (int) read.lengths[at]);
    }
  }
}
