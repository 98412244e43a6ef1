package hms_iceberg.bridge.avro;

import hms_iceberg.bridge.output.StoredValues;
import hms_iceberg.bridge.output.WriteRules;
import java.io.IOException;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.avro.io.Encoder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Encodes rows of Spark as records of a schema; the types of both may differ as a promotion allows. */
final class AvroFields {
  private final Field[] fields;
  /** Where the fields of the record are in a row. */
  private final int[] ordinals;

  AvroFields(WriteRules rules, Schema record) {
    this.fields = fields(rules.fileSchema, record, "");
    this.ordinals = new int[fields.length];
    for (int i = 0; i < ordinals.length; i++) {
      ordinals[i] = rules.stored == null ? i : rules.stored[i];
    }
  }

  public void write(InternalRow row, Encoder to) throws IOException {
    for (int i = 0; i < fields.length; i++) {
      fields[i].write(row, ordinals[i], to);
    }
  }

  private static Field[] fields(StructType struct, Schema record, String prefix) {
    StructField[] known = struct.fields();
    List described = record.getFields();
    Field[] made = new Field[known.length];
    for (int i = 0; i < made.length; i++) {
      made[i] = field(known[i].dataType(), ((Schema.Field) described.get(i)).schema(), prefix + known[i].name());
    }
    return made;
  }

  /** What may be null is a union of null, which stands first, and a type. */
  private static Field field(DataType spark, Schema schema, String path) {
    boolean optional = schema.getType() == Schema.Type.UNION;
    Field made = made(spark, optional ? (Schema) schema.getTypes().get(1) : schema, path);
    made.path = path;
    made.optional = optional;
    return made;
  }

  private static Field made(DataType spark, Schema schema, String path) {
    Schema.Type type = schema.getType();
    if (type == Schema.Type.RECORD) {
      return new Record(fields((StructType) spark, schema, path + "."));
    }
    if (spark instanceof ArrayType) {
      return new Lists(field(((ArrayType) spark).elementType(), schema.getElementType(), path + ".element"));
    }
    if (spark instanceof MapType) {
      boolean plain = type == Schema.Type.MAP;
      List entry = plain ? null : schema.getElementType().getFields();
      Schema key = plain ? Schema.create(Schema.Type.STRING) : ((Schema.Field) entry.get(0)).schema();
      Schema item = plain ? schema.getValueType() : ((Schema.Field) entry.get(1)).schema();
      return new Maps(
          plain, field(((MapType) spark).keyType(), key, path + ".key"),
          field(((MapType) spark).valueType(), item, path + ".value"));
    }
    if (spark instanceof DecimalType) {
      return new Digits((DecimalType) spark, schema.getFixedSize());
    }
    if (type == Schema.Type.FIXED) {
      return "uuid".equals(schema.getProp("logicalType")) ? (Field) new Uuid() : new Fixed(schema.getFixedSize());
    }
    if (type == Schema.Type.STRING) {
      return new Text();
    }
    if (type == Schema.Type.BYTES) {
      return new Bytes();
    }
    if (type == Schema.Type.BOOLEAN) {
      return new Truth();
    }
    if (type == Schema.Type.FLOAT) {
      return new Float32();
    }
    if (type == Schema.Type.DOUBLE) {
      return new Float64(spark instanceof DoubleType);
    }
    return whole(spark, schema);
  }

  /** Numbers of 32 and 64 bits have one form. */
  private static Field whole(DataType spark, Schema schema) {
    if (spark instanceof ByteType || spark instanceof ShortType) {
      return new Small(spark instanceof ByteType);
    }
    if ("time-micros".equals(schema.getProp("logicalType"))) {
      return new OfDay();
    }
    return spark instanceof IntegerType || spark instanceof DateType ? (Field) new Int() : new Whole();
  }

  /** A field of a record, an element, a key or a value. */
  public abstract static class Field {
    public String path;
    public boolean optional;

    public final void write(SpecializedGetters from, int i, Encoder to) throws IOException {
      if (from.isNullAt(i)) {
        if (!optional) {
          throw StoredValues.missing(path);
        }
        to.writeIndex(0);
        return;
      }
      if (optional) {
        to.writeIndex(1);
      }
      value(from, i, to);
    }

    public abstract void value(SpecializedGetters from, int i, Encoder to) throws IOException;
  }

  static final class Truth extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeBoolean(from.getBoolean(i));
    }
  }

  public static final class Small extends Field {
    private final boolean bytes;

    public Small(boolean bytes) {
      this.bytes = bytes;
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeInt(bytes ? (int) from.getByte(i) : (int) from.getShort(i));
    }
  }

  /** Numbers of 32 bits, and days. */
  public static final class Int extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeInt(from.getInt(i));
    }
  }

  public static final class Whole extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeLong(from.getLong(i));
    }
  }

  /** Times of a day, of which Spark has nanoseconds. */
  public static final class OfDay extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeLong(from.getLong(i) / 1000);
    }
  }

  static final class Float32 extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeFloat(from.getFloat(i));
    }
  }

  static final class Float64 extends Field {
    private final boolean wide;

    Float64(boolean wide) {
      this.wide = wide;
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeDouble(wide ? from.getDouble(i) : (double) from.getFloat(i));
    }
  }

  public static final class Text extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      UTF8String text = from.getUTF8String(i);
      if (text.getBaseObject() instanceof byte[]) {
        int start = (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
        to.writeBytes((byte[]) text.getBaseObject(), start, text.numBytes());
      } else {
        to.writeBytes(text.getBytes());
      }
    }
  }

  public static final class Bytes extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeBytes(from.getBinary(i));
    }
  }

  static final class Fixed extends Field {
    private final int length;

    Fixed(int length) {
      this.length = length;
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      byte[] bytes = from.getBinary(i);
      StoredValues.checkLength(bytes.length, length, path);
      to.writeFixed(bytes);
    }
  }

  public static final class Uuid extends Field {
    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      to.writeFixed(StoredValues.uuid(from.getUTF8String(i).toString(), path));
    }
  }

  /** The digits of decimals as bytes of one length, the greatest first. */
  public static final class Digits extends Field {
    private final int precision;
    private final int scale;
    private final byte[] bytes;

    public Digits(DecimalType type, int length) {
      this.precision = type.precision();
      this.scale = type.scale();
      this.bytes = new byte[length];
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      if (precision <= 18) {
        long digits = from.getDecimal(i, precision, scale).toUnscaledLong();
        for (int j = bytes.length - 1; j >= 0; j--) {
          bytes[j] = (byte) digits;
          digits >>= 8;
        }
      } else {
        BigInteger digits = from.getDecimal(i, precision, scale).toJavaBigDecimal().unscaledValue();
        byte[] found = digits.toByteArray();
        int left = bytes.length - found.length;
        Arrays.fill(bytes, 0, left, (byte) (digits.signum() < 0 ? -1 : 0));
        System.arraycopy(found, 0, bytes, left, found.length);
      }
      to.writeFixed(bytes);
    }
  }

  static final class Record extends Field {
    private final Field[] fields;

    Record(Field[] fields) {
      this.fields = fields;
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      InternalRow struct = from.getStruct(i, fields.length);
      for (int j = 0; j < fields.length; j++) {
        fields[j].write(struct, j, to);
      }
    }
  }

  public static final class Lists extends Field {
    private final Field element;

    public Lists(Field element) {
      this.element = element;
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      ArrayData list = from.getArray(i);
      int count = list.numElements();
      to.writeArrayStart();
      to.setItemCount(count);
      for (int j = 0; j < count; j++) {
        to.startItem();
        element.write(list, j, to);
      }
      to.writeArrayEnd();
    }
  }

  /** Those whose keys are no texts are lists of pairs. */
  public static final class Maps extends Field {
    private final boolean plain;
    private final Field key;
    private final Field item;

    public Maps(boolean plain, Field key, Field item) {
      this.plain = plain;
      this.key = key;
      this.item = item;
    }

    public void value(SpecializedGetters from, int i, Encoder to) throws IOException {
      MapData map = from.getMap(i);
      int count = map.numElements();
      ArrayData keys = map.keyArray();
      ArrayData items = map.valueArray();
      if (plain && count > 1) {
        refuseTwice(keys);
      }
      start(to);
      to.setItemCount(count);
      for (int j = 0; j < count; j++) {
        to.startItem();
        key.write(keys, j, to);
        item.write(items, j, to);
      }
      end(to);
    }

    private void start(Encoder to) throws IOException {
      if (plain) {
        to.writeMapStart();
      } else {
        to.writeArrayStart();
      }
    }

    private void end(Encoder to) throws IOException {
      if (plain) {
        to.writeMapEnd();
      } else {
        to.writeArrayEnd();
      }
    }

    private static void refuseTwice(ArrayData keys) {
      Set seen = new HashSet();
      for (int i = 0; i < keys.numElements(); i++) {
        if (!seen.add(keys.getUTF8String(i))) {
          throw new IllegalArgumentException("TypeMismatchError: Cannot write a map that has the key '"
              + keys.getUTF8String(i) + "' twice: Avro's maps have each key once. Make the keys unique, or write Parquet"
              + " or ORC (write.format.default).");
        }
      }
    }
  }
}
