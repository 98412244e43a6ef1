package hms_iceberg.bridge.orc;

import hms_iceberg.bridge.output.StoredValues;
import hms_iceberg.bridge.output.WriteRules;
import java.util.List;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Puts rows of Spark into the vectors of ORC's batches; the types of both may differ as a promotion allows. */
final class OrcFields {
  private final Field[] fields;
  /** Where the columns of the file are in a row. */
  private final int[] ordinals;

  OrcFields(WriteRules rules, TypeDescription type, VectorizedRowBatch batch) {
    this.fields = fields(rules.fileSchema, type, batch.cols, "");
    this.ordinals = new int[fields.length];
    for (int i = 0; i < ordinals.length; i++) {
      ordinals[i] = rules.stored == null ? i : rules.stored[i];
    }
  }

  public void write(InternalRow row, int at) {
    for (int i = 0; i < fields.length; i++) {
      fields[i].write(row, ordinals[i], at);
    }
  }

  private static Field[] fields(StructType struct, TypeDescription type, ColumnVector[] vectors, String prefix) {
    StructField[] known = struct.fields();
    List types = type.getChildren();
    Field[] made = new Field[known.length];
    for (int i = 0; i < made.length; i++) {
      made[i] = field(known[i].dataType(), (TypeDescription) types.get(i), vectors[i], prefix + known[i].name());
    }
    return made;
  }

  private static Field field(DataType spark, TypeDescription type, ColumnVector vector, String path) {
    Field made = made(spark, type, vector, path);
    made.path = path;
    made.required = "true".equals(type.getAttributeValue("iceberg.required"));
    made.vector = vector;
    return made;
  }

  private static Field made(DataType spark, TypeDescription type, ColumnVector vector, String path) {
    if (spark instanceof StructType) {
      StructColumnVector struct = (StructColumnVector) vector;
      return new Struct(fields((StructType) spark, type, struct.fields, path + "."));
    }
    if (spark instanceof ArrayType) {
      ListColumnVector list = (ListColumnVector) vector;
      TypeDescription element = (TypeDescription) type.getChildren().get(0);
      return new Lists(list, field(((ArrayType) spark).elementType(), element, list.child, path + ".element"));
    }
    if (spark instanceof MapType) {
      MapColumnVector map = (MapColumnVector) vector;
      TypeDescription key = (TypeDescription) type.getChildren().get(0);
      TypeDescription value = (TypeDescription) type.getChildren().get(1);
      return new Maps(
          map, field(((MapType) spark).keyType(), key, map.keys, path + ".key"),
          field(((MapType) spark).valueType(), value, map.values, path + ".value"));
    }
    if (spark instanceof DecimalType) {
      DecimalType decimal = (DecimalType) spark;
      return vector instanceof Decimal64ColumnVector ? (Field) new Digits((LongColumnVector) vector, decimal)
          : new Decimals((DecimalColumnVector) vector, decimal);
    }
    if (vector instanceof TimestampColumnVector) {
      return new Time((TimestampColumnVector) vector);
    }
    if (vector instanceof DoubleColumnVector) {
      return new Floating((DoubleColumnVector) vector, spark instanceof DoubleType);
    }
    return vector instanceof BytesColumnVector ? bytes(type, (BytesColumnVector) vector)
        : whole(spark, type, (LongColumnVector) vector);
  }

  private static Field bytes(TypeDescription type, BytesColumnVector vector) {
    if (type.getCategory() == TypeDescription.Category.STRING) {
      return new Text(vector);
    }
    if ("UUID".equals(type.getAttributeValue("iceberg.binary-type"))) {
      return new Uuid(vector);
    }
    String length = type.getAttributeValue("iceberg.length");
    return new Bytes(vector, length == null ? -1 : Integer.parseInt(length));
  }

  private static Field whole(DataType spark, TypeDescription type, LongColumnVector vector) {
    if ("TIME".equals(type.getAttributeValue("iceberg.long-type"))) {
      return new OfDay(vector);
    }
    if (spark instanceof LongType) {
      return new Whole(vector);
    }
    return spark instanceof BooleanType || spark instanceof ByteType || spark instanceof ShortType
        ? (Field) new Small(vector, spark) : new Int(vector);
  }

  /** A column, or what is in one. */
  public abstract static class Field {
    public String path;
    public boolean required;
    public ColumnVector vector;

    public final void write(SpecializedGetters from, int i, int at) {
      if (from.isNullAt(i)) {
        if (required) {
          throw StoredValues.missing(path);
        }
        vector.isNull[at] = true;
        vector.noNulls = false;
      } else {
        value(from, i, at);
      }
    }

    public abstract void value(SpecializedGetters from, int i, int at);
  }

  public static final class Whole extends Field {
    private final LongColumnVector to;

    public Whole(LongColumnVector to) {
      this.to = to;
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.vector[at] = from.getLong(i);
    }
  }

  /** Numbers of 32 bits, and days. */
  public static final class Int extends Field {
    private final LongColumnVector to;

    public Int(LongColumnVector to) {
      this.to = to;
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.vector[at] = from.getInt(i);
    }
  }

  public static final class Small extends Field {
    private final LongColumnVector to;
    private final boolean truths;
    private final boolean bytes;

    public Small(LongColumnVector to, DataType spark) {
      this.to = to;
      this.truths = spark instanceof BooleanType;
      this.bytes = spark instanceof ByteType;
    }

    public void value(SpecializedGetters from, int i, int at) {
      if (truths) {
        to.vector[at] = from.getBoolean(i) ? 1L : 0L;
      } else {
        to.vector[at] = bytes ? (long) from.getByte(i) : (long) from.getShort(i);
      }
    }
  }

  /** Times of a day, of which Spark has nanoseconds. */
  public static final class OfDay extends Field {
    private final LongColumnVector to;

    public OfDay(LongColumnVector to) {
      this.to = to;
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.vector[at] = from.getLong(i) / 1000;
    }
  }

  static final class Floating extends Field {
    private final DoubleColumnVector to;
    private final boolean wide;

    Floating(DoubleColumnVector to, boolean wide) {
      this.to = to;
      this.wide = wide;
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.vector[at] = wide ? from.getDouble(i) : (double) from.getFloat(i);
    }
  }

  /** ORC holds a fraction apart from the seconds, which are cut off towards 1970. */
  public static final class Time extends Field {
    private static final long PER_SECOND = 1000000;
    /** A shorter fraction is no reason for readers to take a second off. */
    private static final long LEAST_FRACTION = 1000;

    private final TimestampColumnVector to;

    public Time(TimestampColumnVector to) {
      this.to = to;
      to.setIsUTC(true);
    }

    public void value(SpecializedGetters from, int i, int at) {
      long micros = from.getLong(i);
      if (micros < 0 && micros >= LEAST_FRACTION - PER_SECOND) {
        throw new UnsupportedOperationException("UnsupportedError: Cannot write column '" + path + "' to an ORC file: it has"
            + " a time less than a second before 1970, which readers of ORC take for one a second later. Set"
            + " write.format.default to parquet or avro.");
      }
      to.time[at] = Math.floorDiv(micros, 1000L);
      to.nanos[at] = (int) Math.floorMod(micros, PER_SECOND) * 1000;
    }
  }

  /** Decimals of at most 18 digits. */
  public static final class Digits extends Field {
    private final LongColumnVector to;
    private final int precision;
    private final int scale;

    public Digits(LongColumnVector to, DecimalType type) {
      this.to = to;
      this.precision = type.precision();
      this.scale = type.scale();
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.vector[at] = from.getDecimal(i, precision, scale).toUnscaledLong();
    }
  }

  public static final class Decimals extends Field {
    private final DecimalColumnVector to;
    private final int precision;
    private final int scale;

    public Decimals(DecimalColumnVector to, DecimalType type) {
      this.to = to;
      this.precision = type.precision();
      this.scale = type.scale();
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.set(at, HiveDecimal.create(from.getDecimal(i, precision, scale).toJavaBigDecimal(), false));
    }
  }

  public static final class Text extends Field {
    private final BytesColumnVector to;

    public Text(BytesColumnVector to) {
      this.to = to;
    }

    public void value(SpecializedGetters from, int i, int at) {
      UTF8String text = from.getUTF8String(i);
      if (text.getBaseObject() instanceof byte[]) { // of the row, whose bytes are others soon
        int start = (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
        to.setVal(at, (byte[]) text.getBaseObject(), start, text.numBytes());
      } else {
        to.setVal(at, text.getBytes());
      }
    }
  }

  public static final class Bytes extends Field {
    private final BytesColumnVector to;
    private final int length;

    public Bytes(BytesColumnVector to, int length) {
      this.to = to;
      this.length = length;
    }

    public void value(SpecializedGetters from, int i, int at) {
      byte[] bytes = from.getBinary(i);
      if (length >= 0) {
        StoredValues.checkLength(bytes.length, length, path);
      }
      to.setVal(at, bytes);
    }
  }

  public static final class Uuid extends Field {
    private final BytesColumnVector to;

    public Uuid(BytesColumnVector to) {
      this.to = to;
    }

    public void value(SpecializedGetters from, int i, int at) {
      to.setVal(at, StoredValues.uuid(from.getUTF8String(i).toString(), path));
    }
  }

  /** The fields of a struct that is null are not written. */
  public static final class Struct extends Field {
    private final Field[] fields;

    public Struct(Field[] fields) {
      this.fields = fields;
    }

    public void value(SpecializedGetters from, int i, int at) {
      InternalRow struct = from.getStruct(i, fields.length);
      for (int j = 0; j < fields.length; j++) {
        fields[j].write(struct, j, at);
      }
    }
  }

  public static final class Lists extends Field {
    private final ListColumnVector to;
    private final Field element;

    public Lists(ListColumnVector to, Field element) {
      this.to = to;
      this.element = element;
    }

    public void value(SpecializedGetters from, int i, int at) {
      ArrayData list = from.getArray(i);
      int count = list.numElements();
      to.offsets[at] = to.childCount;
      to.lengths[at] = count;
      grow(to.child, to.childCount + count);
      append(list, element, to.childCount);
      to.childCount += count;
    }

    public static void append(ArrayData list, Field element, int first) {
      int count = list.numElements();
      for (int j = 0; j < count; j++) {
        element.write(list, j, first + j);
      }
    }

    static void grow(ColumnVector child, int size) {
      if (child.isNull.length < size) {
        child.ensureSize(2 * size, true);
      }
    }
  }

  public static final class Maps extends Field {
    private final MapColumnVector to;
    private final Field key;
    private final Field item;

    public Maps(MapColumnVector to, Field key, Field item) {
      this.to = to;
      this.key = key;
      this.item = item;
    }

    public void value(SpecializedGetters from, int i, int at) {
      MapData map = from.getMap(i);
      int count = map.numElements();
      to.offsets[at] = to.childCount;
      to.lengths[at] = count;
      Lists.grow(to.keys, to.childCount + count);
      Lists.grow(to.values, to.childCount + count);
      Lists.append(map.keyArray(), key, to.childCount);
      Lists.append(map.valueArray(), item, to.childCount);
      to.childCount += count;
    }
  }
}
