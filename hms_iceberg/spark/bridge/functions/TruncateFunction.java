package hms_iceberg.bridge.functions;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** truncate(width, value): numbers down to a multiple of the width, strings and bytes to their beginning. */
public final class TruncateFunction extends TransformFunction {
  TruncateFunction(DataType value) {
    super("truncate", new DataType[] {DataTypes.IntegerType, accepted(value)}, accepted(value));
  }

  private static DataType accepted(DataType type) {
    if (type instanceof StringType) {
      return DataTypes.StringType;
    }
    if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
        || type instanceof LongType || type instanceof DecimalType || type instanceof BinaryType) {
      return type;
    }
    throw refusal("tinyint, smallint, int, bigint, decimal, string or binary", type);
  }

  public static byte invoke(int width, byte value) {
    return (byte) invoke(width, (int) value);
  }

  public static short invoke(int width, short value) {
    return (short) invoke(width, (int) value);
  }

  public static int invoke(int width, int value) {
    return value - Math.floorMod(value, width);
  }

  public static long invoke(int width, long value) {
    return value - Math.floorMod(value, (long) width);
  }

  /** So many characters (code points). */
  public static UTF8String invoke(int width, UTF8String value) {
    return value == null ? null : value.substring(0, width);
  }

  public static byte[] invoke(int width, byte[] value) {
    return value == null ? null : Arrays.copyOf(value, Math.min(width, value.length));
  }

  /** The width counts units of the last digit. */
  public static Decimal invoke(int width, Decimal value) {
    if (value == null) {
      return null;
    }
    BigInteger unscaled = value.toJavaBigDecimal().unscaledValue();
    BigInteger rest = unscaled.mod(BigInteger.valueOf((long) width));
    return Decimal.apply(new BigDecimal(unscaled.subtract(rest), value.scale()));
  }

  Object result(InternalRow arguments) {
    int width = arguments.getInt(0);
    Object value = arguments.get(1, value());
    if (value instanceof UTF8String) {
      return invoke(width, (UTF8String) value);
    }
    if (value instanceof byte[]) {
      return invoke(width, (byte[]) value);
    }
    if (value instanceof Decimal) {
      return invoke(width, (Decimal) value);
    }
    if (value instanceof Long) {
      return Long.valueOf(invoke(width, ((Long) value).longValue()));
    }
    int truncated = invoke(width, ((Number) value).intValue());
    if (value instanceof Byte) {
      return Byte.valueOf((byte) truncated);
    }
    return value instanceof Short ? (Object) Short.valueOf((short) truncated) : (Object) Integer.valueOf(truncated);
  }
}
