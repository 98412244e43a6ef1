package hms_iceberg.bridge.avro;

import hms_iceberg.bridge.columns.FixedSettings;
import hms_iceberg.bridge.parquet.ParquetFile;
import hms_iceberg.bridge.wire.Hex;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.util.Utf8;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.execution.datasources.DataSourceUtils;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/** How values of Avro's types become those of Spark's. */
final class AvroValues {
  private static final long MICROS_PER_DAY = 86400000000L;

  /** Make proleptic days and instants of those that an old writer counted; null if they are proleptic. */
  private final Function1 days;
  private final Function1 instants;

  AvroValues(Map marks) {
    ParquetFile.Lookup lookup = new ParquetFile.Lookup(marks, false);
    RebaseSpec rebase = DataSourceUtils.datetimeRebaseSpec(lookup, FixedSettings.REBASE_MODE);
    boolean legacy = "LEGACY".equals(rebase.mode().toString());
    this.days = legacy ? DataSourceUtils.createDateRebaseFuncInRead(rebase.mode(), "Avro") : null;
    this.instants = legacy ? DataSourceUtils.createTimestampRebaseFuncInRead(rebase, "Avro") : null;
  }

  /** Null if values of the schema cannot become those of the type. */
  AvroValue simple(DataType type, Schema schema) {
    Schema.Type kind = schema.getType();
    String logical = String.valueOf(schema.getProp("logicalType"));
    if (kind == Schema.Type.NULL) {
      return new Nothing(type instanceof StructType);
    }
    if ("decimal".equals(logical) && (kind == Schema.Type.BYTES || kind == Schema.Type.FIXED)) {
      return decimal(type, schema);
    }
    if (kind == Schema.Type.BOOLEAN) {
      return type instanceof BooleanType ? new Truth() : null;
    }
    if (kind == Schema.Type.INT) {
      return ofInt(type, logical);
    }
    if (kind == Schema.Type.LONG) {
      return ofLong(type, logical, !Boolean.FALSE.equals(schema.getObjectProp("adjust-to-utc")));
    }
    if (kind == Schema.Type.FLOAT) {
      return type instanceof FloatType ? new Float32() : type instanceof DoubleType ? new Float32As64() : null;
    }
    if (kind == Schema.Type.DOUBLE) {
      return type instanceof DoubleType ? new Float64() : null;
    }
    if (!(type instanceof StringType) && !(type instanceof BinaryType)) {
      return null;
    }
    if (kind == Schema.Type.FIXED) {
      boolean uuid = type instanceof StringType && schema.getFixedSize() == 16;
      return uuid ? (AvroValue) new Uuid() : type instanceof BinaryType ? new Fixed(schema.getFixedSize()) : null;
    }
    if (kind == Schema.Type.ENUM) {
      return new Symbol((String[]) schema.getEnumSymbols().toArray(new String[0]));
    }
    return kind == Schema.Type.STRING || kind == Schema.Type.BYTES ? new Bytes() : null;
  }

  private AvroValue ofInt(DataType type, String logical) {
    if ("date".equals(logical)) {
      return type instanceof DateType ? new Int(days)
          : isTimestamp(type) ? (AvroValue) new IntAsLong(days, MICROS_PER_DAY) : null;
    }
    if ("time-millis".equals(logical)) {
      return isTime(type) ? new IntAsLong(null, 1000000) : null;
    }
    return type instanceof IntegerType ? new Int(null)
        : type instanceof LongType ? (AvroValue) new IntAsLong(null, 1) : null;
  }

  private AvroValue ofLong(DataType type, String logical, boolean adjusted) {
    if ("time-micros".equals(logical)) {
      return isTime(type) ? new Long64(1000, 1, null) : null;
    }
    boolean local = logical.startsWith("local-timestamp-");
    if (local || logical.startsWith("timestamp-")) {
      if (!isTimestamp(type)) {
        return null;
      }
      Function1 rebase = local || !adjusted ? null : instants;
      return logical.endsWith("millis") ? new Long64(1000, 1, rebase)
          : logical.endsWith("nanos") ? new Long64(1, 1000, rebase) : new Long64(1, 1, rebase);
    }
    return type instanceof LongType ? new Long64(1, 1, null) : null;
  }

  private static boolean isTimestamp(DataType type) {
    return type instanceof TimestampType || type instanceof TimestampNTZType;
  }

  /** Not all versions of Spark have the type. */
  private static boolean isTime(DataType type) {
    return type.typeName().startsWith("time(");
  }

  private static AvroValue decimal(DataType type, Schema schema) {
    if (!(type instanceof DecimalType)) {
      return null;
    }
    int precision = ((Number) schema.getObjectProp("precision")).intValue();
    Object given = schema.getObjectProp("scale");
    int scale = given == null ? 0 : ((Number) given).intValue();
    DecimalType wanted = (DecimalType) type;
    if (scale > wanted.scale() || precision - scale > wanted.precision() - wanted.scale()) {
      return null;
    }
    int fixed = schema.getType() == Schema.Type.FIXED ? schema.getFixedSize() : -1;
    return new Digits(fixed, wanted.scale() - scale, wanted.precision());
  }

  /** A value that nobody wants. */
  static final class Skipped extends AvroValue {
    private final Schema schema;

    Skipped(Schema schema) {
      this.schema = schema;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      GenericDatumReader.skip(schema, in);
    }
  }

  /** A null, of which nothing is in the file. */
  public static final class Nothing extends AvroValue {
    private final boolean struct;

    public Nothing(boolean struct) {
      this.struct = struct;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) {
      if (struct) {
        to.appendStruct(true);
      } else {
        to.appendNull();
      }
    }
  }

  public static final class Optional extends AvroValue {
    private final AvroValue value;
    private final int nulls;
    private final Nothing nothing;

    Optional(AvroValue value, int nulls, boolean struct) {
      this.value = value;
      this.nulls = nulls;
      this.nothing = new Nothing(struct);
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      if (in.readIndex() == nulls) {
        nothing.read(in, to);
      } else {
        value.read(in, to);
      }
    }
  }

  /** A field of a struct that the file lacks. */
  public static final class Constant extends AvroValue {
    private final DataType type;
    private final Object value;

    public Constant(DataType type, Object value) {
      this.type = type;
      this.value = value;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) {
      if (value == null) {
        new Nothing(type instanceof StructType).read(in, to);
      } else if (value instanceof Boolean) {
        to.appendBoolean(((Boolean) value).booleanValue());
      } else if (value instanceof Integer) {
        to.appendInt(((Integer) value).intValue());
      } else if (value instanceof Long) {
        to.appendLong(((Long) value).longValue());
      } else if (value instanceof Float) {
        to.appendFloat(((Float) value).floatValue());
      } else if (value instanceof Double) {
        to.appendDouble(((Double) value).doubleValue());
      } else if (value instanceof Decimal) {
        Digits.append(
            to, ((Decimal) value).toJavaBigDecimal().unscaledValue(), ((DecimalType) type).precision());
      } else {
        byte[] bytes = value instanceof UTF8String ? ((UTF8String) value).getBytes() : (byte[]) value;
        to.appendByteArray(bytes, 0, bytes.length);
      }
    }
  }

  public static final class Struct extends AvroValue {
    private final AvroValue[] fields;
    private final int[] ordinals;
    /** Fields that the file lacks, by their ordinals. */
    private final Map absent;

    public Struct(AvroValue[] fields, int[] ordinals, Map absent) {
      this.fields = fields;
      this.ordinals = ordinals;
      this.absent = absent;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      to.appendStruct(false);
      for (int i = 0; i < fields.length; i++) {
        fields[i].read(in, ordinals[i] < 0 ? null : to.getChild(ordinals[i]));
      }
      if (!absent.isEmpty()) {
        for (Iterator it = absent.entrySet().iterator(); it.hasNext();) {
          Map.Entry entry = (Map.Entry) it.next();
          ((AvroValue) entry.getValue()).read(in, to.getChild(((Integer) entry.getKey()).intValue()));
        }
      }
    }
  }

  /** Lists come in blocks, and Spark wants to know their length before: they are counted as they are read. */
  public static final class Lists extends AvroValue {
    private final AvroValue element;

    public Lists(AvroValue element) {
      this.element = element;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      int row = to.appendArray(0);
      int first = to.getArrayOffset(row);
      int count = 0;
      WritableColumnVector elements = to.arrayData();
      for (long left = in.readArrayStart(); left > 0; left = in.arrayNext()) {
        for (long i = 0; i < left; i++) {
          element.read(in, elements);
        }
        count += (int) left;
      }
      to.putArray(row, first, count);
    }
  }

  public static final class Maps extends AvroValue {
    private final boolean ofRecords;
    private final AvroValue key;
    private final AvroValue value;

    /** Maps whose keys are no text are arrays of records. */
    public Maps(boolean ofRecords, AvroValue key, AvroValue value) {
      this.ofRecords = ofRecords;
      this.key = key;
      this.value = value;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      int row = to.appendArray(0);
      int first = to.getArrayOffset(row);
      int count = 0;
      WritableColumnVector keys = to.getChild(0);
      WritableColumnVector values = to.getChild(1);
      for (long left = ofRecords ? in.readArrayStart() : in.readMapStart(); left > 0;
          left = ofRecords ? in.arrayNext() : in.mapNext()) {
        for (long i = 0; i < left; i++) {
          key.read(in, keys);
          value.read(in, values);
        }
        count += (int) left;
      }
      to.putArray(row, first, count);
    }
  }

  static final class Truth extends AvroValue {
    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      to.appendBoolean(in.readBoolean());
    }
  }

  public static final class Int extends AvroValue {
    private final Function1 rebase;

    public Int(Function1 rebase) {
      this.rebase = rebase;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      int value = in.readInt();
      to.appendInt(rebase == null ? value : ((Integer) rebase.apply(Integer.valueOf(value))).intValue());
    }
  }

  static final class IntAsLong extends AvroValue {
    private final Function1 rebase;
    private final long factor;

    IntAsLong(Function1 rebase, long factor) {
      this.rebase = rebase;
      this.factor = factor;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      int value = in.readInt();
      to.appendLong((rebase == null ? value : ((Integer) rebase.apply(Integer.valueOf(value))).intValue()) * factor);
    }
  }

  static final class Long64 extends AvroValue {
    private final long factor;
    private final long divisor;
    private final Function1 rebase;

    Long64(long factor, long divisor, Function1 rebase) {
      this.factor = factor;
      this.divisor = divisor;
      this.rebase = rebase;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      long value = in.readLong();
      if (factor != 1) {
        value = Math.multiplyExact(value, factor);
      } else if (divisor != 1) {
        value = Math.floorDiv(value, divisor);
      }
      to.appendLong(rebase == null ? value : ((Long) rebase.apply(Long.valueOf(value))).longValue());
    }
  }

  static final class Float32 extends AvroValue {
    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      to.appendFloat(in.readFloat());
    }
  }

  static final class Float32As64 extends AvroValue {
    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      to.appendDouble(in.readFloat());
    }
  }

  static final class Float64 extends AvroValue {
    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      to.appendDouble(in.readDouble());
    }
  }

  /** Text or bytes, which Avro lays out alike. */
  public static final class Bytes extends AvroValue {
    private Utf8 last = new Utf8();

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      last = in.readString(last);
      to.appendByteArray(last.getBytes(), 0, last.getByteLength());
    }
  }

  static final class Fixed extends AvroValue {
    private final byte[] bytes;

    Fixed(int size) {
      this.bytes = new byte[size];
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      in.readFixed(bytes, 0, bytes.length);
      to.appendByteArray(bytes, 0, bytes.length);
    }
  }

  public static final class Uuid extends AvroValue {
    private final byte[] bytes = new byte[16];

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      in.readFixed(bytes, 0, bytes.length);
      byte[] text = Hex.uuid(bytes);
      to.appendByteArray(text, 0, text.length);
    }
  }

  static final class Symbol extends AvroValue {
    private final byte[][] symbols;

    Symbol(String[] symbols) {
      this.symbols = new byte[symbols.length][];
      for (int i = 0; i < symbols.length; i++) {
        this.symbols[i] = UTF8String.fromString(symbols[i]).getBytes();
      }
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      byte[] text = symbols[in.readEnum()];
      to.appendByteArray(text, 0, text.length);
    }
  }

  public static final class Digits extends AvroValue {
    private static final BigInteger TEN = BigInteger.valueOf(10);

    private final byte[] fixed;
    private final BigInteger factor;
    private final int precision;
    private ByteBuffer last;

    /** The size is negative for bytes of any length. */
    public Digits(int size, int zeros, int precision) {
      this.fixed = size < 0 ? null : new byte[size];
      this.factor = zeros == 0 ? null : TEN.pow(zeros);
      this.precision = precision;
    }

    public void read(BinaryDecoder in, WritableColumnVector to) throws IOException {
      byte[] bytes = fixed;
      int length;
      if (fixed == null) {
        last = in.readBytes(last);
        bytes = last.array();
        length = last.remaining();
      } else {
        in.readFixed(fixed, 0, fixed.length);
        length = fixed.length;
      }
      if (factor == null && precision <= 18 && length <= 8 && length > 0) {
        long digits = bytes[0];
        for (int i = 1; i < length; i++) {
          digits = digits << 8 | (bytes[i] & 0xff);
        }
        append(to, digits, precision);
        return;
      }
      BigInteger digits = new BigInteger(java.util.Arrays.copyOf(bytes, length));
      append(to, factor == null ? digits : digits.multiply(factor), precision);
    }

    private static void append(WritableColumnVector to, long digits, int precision) {
      if (precision <= 9) {
        to.appendInt((int) digits);
      } else {
        to.appendLong(digits);
      }
    }

    /** As Spark keeps decimals by their precision. */
    public static void append(WritableColumnVector to, BigInteger digits, int precision) {
      if (precision <= 18) {
        append(to, digits.longValue(), precision);
      } else {
        byte[] bytes = digits.toByteArray();
        to.appendByteArray(bytes, 0, bytes.length);
      }
    }
  }
}
