package hms_iceberg.bridge.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/** bucket(number, value): 32-bit Murmur3 of the value (specification, Appendix B), without its sign, modulo. */
public final class BucketFunction extends TransformFunction {
  BucketFunction(DataType value) {
    super("bucket", new DataType[] {DataTypes.IntegerType, accepted(value)}, DataTypes.IntegerType);
  }

  private static DataType accepted(DataType type) {
    if (type instanceof ByteType || type instanceof ShortType) {
      return DataTypes.IntegerType;
    }
    if (type instanceof StringType) {
      return DataTypes.StringType;
    }
    if (type instanceof IntegerType || type instanceof LongType || type instanceof DateType
        || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DecimalType
        || type instanceof BinaryType) {
      return type;
    }
    throw refusal("date, tinyint, smallint, int, bigint, decimal, timestamp, timestamp_ntz, string or binary", type);
  }

  public static int invoke(int buckets, int value) {
    return invoke(buckets, (long) value);
  }

  public static int invoke(int buckets, long value) {
    return bucket(buckets, Murmur3_x86_32.hashLong(value, 0));
  }

  public static Integer invoke(int buckets, UTF8String value) {
    return value == null ? null : Integer.valueOf(
        bucket(buckets, hash(value.getBaseObject(), value.getBaseOffset(), value.numBytes())));
  }

  public static Integer invoke(int buckets, byte[] value) {
    return value == null
        ? null : Integer.valueOf(bucket(buckets, hash(value, (long) Platform.BYTE_ARRAY_OFFSET, value.length)));
  }

  /** The fewest bytes that hold the unscaled value. */
  public static Integer invoke(int buckets, Decimal value) {
    return value == null ? null : invoke(buckets, value.toJavaBigDecimal().unscaledValue().toByteArray());
  }

  private static int hash(Object base, long offset, int length) {
    return Murmur3_x86_32.hashUnsafeBytes2(base, offset, length, 0);
  }

  private static int bucket(int buckets, int hash) {
    return (hash & Integer.MAX_VALUE) % buckets;
  }

  Object result(InternalRow arguments) {
    int buckets = arguments.getInt(0);
    Object value = arguments.get(1, value());
    if (value instanceof UTF8String) {
      return invoke(buckets, (UTF8String) value);
    }
    if (value instanceof byte[]) {
      return invoke(buckets, (byte[]) value);
    }
    return value instanceof Decimal
        ? invoke(buckets, (Decimal) value) : Integer.valueOf(invoke(buckets, ((Number) value).longValue()));
  }
}
