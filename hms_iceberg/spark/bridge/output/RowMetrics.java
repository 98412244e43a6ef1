package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.FieldIds;
import hms_iceberg.bridge.partitions.ValueText;
import hms_iceberg.bridge.wire.Hex;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VarcharType;
import org.apache.spark.unsafe.types.ByteArray;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Counts nulls and NaN, and keeps the least and the greatest of all other values, of the columns that Python asks for and
 * that are in no list or map. What becomes of them in the table's metadata is Python's to say.
 */
public final class RowMetrics {
  private final Column[] columns;

  private RowMetrics(List columns) {
    this.columns = (Column[]) columns.toArray(new Column[0]);
  }

  /**
   * The metrics of a new file.
   *
   * @param widths by field id, how many characters or bytes of values are told; 0 for all, -1 if no value is
   */
  public static RowMetrics of(StructType schema, Map widths) {
    List columns = new ArrayList();
    collect(schema, new int[0], new int[0], widths, columns);
    return new RowMetrics(columns);
  }

  private static void collect(StructType struct, int[] path, int[] sizes, Map widths, List columns) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      int[] here = plus(path, i);
      int[] around = plus(sizes, fields.length);
      DataType type = fields[i].dataType();
      if (type instanceof StructType) {
        collect((StructType) type, here, around, widths, columns);
        continue;
      }
      Integer width = (Integer) widths.get(Integer.valueOf(FieldIds.of(fields[i])));
      Column column = width == null ? null : column(fields[i], width.intValue());
      if (column != null) {
        column.id = FieldIds.of(fields[i]);
        column.path = here;
        column.sizes = around;
        columns.add(column);
      }
    }
  }

  private static int[] plus(int[] numbers, int number) {
    int[] longer = Arrays.copyOf(numbers, numbers.length + 1);
    longer[numbers.length] = number;
    return longer;
  }

  /** Null if values of the type are not counted. */
  private static Column column(StructField field, int width) {
    DataType type = field.dataType();
    if (type instanceof FloatType || type instanceof DoubleType) {
      return new Floats(type instanceof DoubleType, width);
    }
    if (width < 0) {
      return new Column();
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return decimal.precision() <= Decimal.MAX_LONG_DIGITS()
          ? (Column) new Digits(decimal.precision(), decimal.scale())
          : new Decimals(decimal.precision(), decimal.scale());
    }
    if (type instanceof BinaryType) {
      return new Bytes(width);
    }
    if (type instanceof StringType || type instanceof CharType || type instanceof VarcharType) {
      return new FieldIds(field.metadata()).fixed("") < 0 ? (Column) new Uuids(field.name()) : new Texts(width);
    }
    if (type instanceof BooleanType) {
      return new Truths();
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return new Ints();
    }
    if (type instanceof ByteType || type instanceof ShortType) {
      return new Small(type instanceof ByteType);
    }
    boolean counted = type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType
        || type.typeName().startsWith("time(");
    return counted ? new Longs() : new Column();
  }

  public void add(InternalRow row) {
    for (int i = 0; i < columns.length; i++) {
      columns[i].add(row);
    }
  }

  /** By field id, how many nulls and NaN there were and the least and greatest value: {"3": [0, 1, -1.5, 2.0]}. */
  public String json() {
    ObjectNode all = JsonNodeFactory.instance.objectNode();
    for (int i = 0; i < columns.length; i++) {
      columns[i].put(all.putArray(String.valueOf(columns[i].id)));
    }
    return all.toString();
  }

  /** One that only counts nulls. */
  public static class Column {
    public int id;
    public int[] path;
    public int[] sizes;
    private long nulls;
    boolean any;

    public final void add(InternalRow row) {
      InternalRow struct = row;
      int last = path.length - 1;
      for (int i = 0; i < last; i++) {
        if (struct.isNullAt(path[i])) {
          nulls++;
          return;
        }
        struct = struct.getStruct(path[i], sizes[i + 1]);
      }
      if (struct.isNullAt(path[last])) {
        nulls++;
      } else {
        value(struct, path[last]);
      }
    }

    public void value(InternalRow struct, int at) {}

    long nans() {
      return 0;
    }

    /** The least value, or the greatest, as Spark has it; null if it cannot be told. */
    Object least() {
      return null;
    }

    Object greatest() {
      return null;
    }

    public final void put(ArrayNode metrics) {
      Object least = any ? least() : null;
      Object greatest = any ? greatest() : null;
      boolean told = least != null && greatest != null;
      metrics.add(nulls);
      metrics.add(nans());
      metrics.add(told ? ValueText.of(least) : null);
      metrics.add(told ? ValueText.of(greatest) : null);
    }
  }

  static final class Floats extends Column {
    private final boolean wide;
    private final boolean told;
    private long nans;
    private double low;
    private double high;

    Floats(boolean wide, int width) {
      this.wide = wide;
      this.told = width >= 0;
    }

    public void value(InternalRow struct, int at) {
      double value = wide ? struct.getDouble(at) : (double) struct.getFloat(at);
      if (value != value) {
        nans++;
      } else if (!any) {
        any = told;
        low = value;
        high = value;
      } else if (value <= low) {
        low = Double.compare(value, low) < 0 ? value : low;
      } else if (value >= high) {
        high = Double.compare(value, high) > 0 ? value : high;
      }
    }

    long nans() {
      return nans;
    }

    Object least() {
      return Double.valueOf(low);
    }

    Object greatest() {
      return Double.valueOf(high);
    }
  }

  /** Whole numbers of 64 bits. */
  static class Longs extends Column {
    long low = Long.MAX_VALUE;
    long high = Long.MIN_VALUE;

    public void value(InternalRow struct, int at) {
      keep(struct.getLong(at));
    }

    public final void keep(long value) {
      any = true;
      if (value < low) {
        low = value;
      }
      if (value > high) {
        high = value;
      }
    }

    Object least() {
      return Long.valueOf(low);
    }

    Object greatest() {
      return Long.valueOf(high);
    }
  }

  static final class Ints extends Longs {
    public void value(InternalRow struct, int at) {
      keep(struct.getInt(at));
    }
  }

  public static final class Small extends Longs {
    private final boolean bytes;

    public Small(boolean bytes) {
      this.bytes = bytes;
    }

    public void value(InternalRow struct, int at) {
      keep(bytes ? (long) struct.getByte(at) : (long) struct.getShort(at));
    }
  }

  static final class Truths extends Longs {
    public void value(InternalRow struct, int at) {
      keep(struct.getBoolean(at) ? 1L : 0L);
    }

    Object least() {
      return Boolean.valueOf(low != 0);
    }

    Object greatest() {
      return Boolean.valueOf(high != 0);
    }
  }

  /** Decimals whose digits are a whole number of 64 bits. */
  public static final class Digits extends Longs {
    private final int precision;
    private final int scale;

    public Digits(int precision, int scale) {
      this.precision = precision;
      this.scale = scale;
    }

    public void value(InternalRow struct, int at) {
      keep(struct.getDecimal(at, precision, scale).toUnscaledLong());
    }

    Object least() {
      return Decimal.apply(low, precision, scale);
    }

    Object greatest() {
      return Decimal.apply(high, precision, scale);
    }
  }

  public static final class Decimals extends Column {
    private final int precision;
    private final int scale;
    private Decimal low;
    private Decimal high;

    public Decimals(int precision, int scale) {
      this.precision = precision;
      this.scale = scale;
    }

    public void value(InternalRow struct, int at) {
      Decimal value = struct.getDecimal(at, precision, scale);
      if (!any || value.compare(low) < 0) {
        low = value;
      }
      if (!any || value.compare(high) > 0) {
        high = value;
      }
      any = true;
    }

    Object least() {
      return low;
    }

    Object greatest() {
      return high;
    }
  }

  static final class Texts extends Column {
    private final int width;
    private UTF8String low;
    private UTF8String high;

    Texts(int width) {
      this.width = width;
    }

    public void value(InternalRow struct, int at) {
      UTF8String value = struct.getUTF8String(at);
      if (!any || value.compareTo(low) < 0) {
        low = value.copy();
      }
      if (!any || value.compareTo(high) > 0) {
        high = value.copy();
      }
      any = true;
    }

    Object least() {
      return told(low);
    }

    Object greatest() {
      return told(high);
    }

    /** One character more than is kept tells that there are more. What is no UTF-8 has no form in metadata. */
    private Object told(UTF8String value) {
      UTF8String some = width == 0 ? value : value.substring(0, width + 1);
      return UTF8String.fromString(some.toString()).equals(some) ? some : null;
    }
  }

  public static class Bytes extends Column {
    private final int width;
    private byte[] low;
    private byte[] high;

    public Bytes(int width) {
      this.width = width;
    }

    public void value(InternalRow struct, int at) {
      keep(struct.getBinary(at));
    }

    public final void keep(byte[] value) {
      if (!any || ByteArray.compareBinary(value, low) < 0) {
        low = value;
      }
      if (!any || ByteArray.compareBinary(value, high) > 0) {
        high = value;
      }
      any = true;
    }

    public Object told(byte[] value) {
      return width == 0 || value.length <= width ? value : Arrays.copyOf(value, width + 1);
    }

    final Object least() {
      return told(low);
    }

    final Object greatest() {
      return told(high);
    }
  }

  /** Texts of UUIDs, compared as the bytes that are stored. */
  static final class Uuids extends Bytes {
    private final String name;

    Uuids(String name) {
      super(0);
      this.name = name;
    }

    public void value(InternalRow struct, int at) {
      keep(StoredValues.uuid(struct.getUTF8String(at).toString(), name));
    }

    public Object told(byte[] value) {
      return UTF8String.fromBytes(Hex.uuid(value));
    }
  }
}
