package hms_iceberg.bridge.partitions;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.functions.BucketFunction;
import hms_iceberg.bridge.functions.TimeFunctions;
import hms_iceberg.bridge.functions.TruncateFunction;
import hms_iceberg.bridge.wire.Hex;
import hms_iceberg.bridge.wire.Json;
import java.io.Serializable;
import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** A value of a row's partition out of a column of it. */
public abstract class PartitionTransform implements Serializable {
  private int[] path;
  private int[] widths;
  private String kind;
  /** Of a column of nanoseconds: values of the identity are multiplied to nanoseconds, others divided to microseconds. */
  private long multiplier = 1;
  private long divisor = 1;
  /** Iceberg's type of the column, and Spark's. */
  public String source;
  public DataType type;

  public abstract Object transformed(Object value);

  /** The value as a folder's name shows it. */
  public String text(Object value) {
    return value == null ? "null" : PartitionText.of(source, value);
  }

  public static PartitionTransform of(JsonNode field) {
    String name = field.get("transform").asText();
    int width = field.get("width").isNull() ? 0 : field.get("width").asInt();
    PartitionTransform transform;
    if ("void".equals(name)) {
      transform = new Nothing();
    } else if ("identity".equals(name)) {
      transform = new Same();
    } else if ("bucket".equals(name)) {
      transform = new Bucket(width);
    } else if ("truncate".equals(name)) {
      transform = new Truncate(width);
    } else {
      transform = new Time(name);
    }
    JsonNode path = field.get("path");
    transform.path = new int[path.size()];
    transform.widths = new int[path.size()];
    for (int i = 0; i < path.size(); i++) {
      transform.path[i] = Json.at(Json.at(path, i), 0).asInt();
      transform.widths[i] = Json.at(Json.at(path, i), 1).asInt();
    }
    transform.source = field.get("source").asText();
    String nanoseconds = field.has("nanoseconds") ? field.get("nanoseconds").asText() : "";
    transform.multiplier = "micros".equals(nanoseconds) && transform instanceof Same ? 1000 : 1;
    transform.divisor = "bigint".equals(nanoseconds) && !(transform instanceof Same) ? 1000 : 1;
    transform.type = DataType.fromJson(field.get("type").toString());
    return transform;
  }

  public Object of(InternalRow row) {
    InternalRow struct = row;
    int last = path.length - 1;
    for (int i = 0; i < last; i++) {
      if (struct.isNullAt(path[i])) {
        return null;
      }
      struct = struct.getStruct(path[i], widths[i]);
    }
    if (struct.isNullAt(path[last])) {
      return null;
    }
    Object value = struct.get(path[last], type);
    if (multiplier != divisor) {
      value = Long.valueOf(Math.floorDiv(Math.multiplyExact(((Long) value).longValue(), multiplier), divisor));
    }
    return transformed(value);
  }

  public static final class Nothing extends PartitionTransform {
    public Object of(InternalRow row) {
      return null;
    }

    public Object transformed(Object value) {
      return null;
    }
  }

  public static final class Same extends PartitionTransform {
    public Object transformed(Object value) {
      return value instanceof byte[] ? ByteBuffer.wrap((byte[]) value) : value;
    }
  }

  static final class Bucket extends PartitionTransform {
    private final int count;

    Bucket(int count) {
      this.count = count;
    }

    public Object transformed(Object value) {
      return Integer.valueOf(bucket(value));
    }

    private int bucket(Object value) {
      if (value instanceof UTF8String) {
        return "uuid".equals(source)
            ? BucketFunction.invoke(count, Hex.ofUuid(value.toString())).intValue()
            : BucketFunction.invoke(count, (UTF8String) value).intValue();
      }
      if (value instanceof byte[]) {
        return BucketFunction.invoke(count, (byte[]) value).intValue();
      }
      if (value instanceof Decimal) {
        return BucketFunction.invoke(count, (Decimal) value).intValue();
      }
      long number = ((Number) value).longValue();
      return BucketFunction.invoke(count, "time".equals(source) ? number / 1000 : number); // Spark's are nanoseconds
    }

    public String text(Object value) {
      return String.valueOf(value);
    }
  }

  static final class Truncate extends PartitionTransform {
    private final int width;

    Truncate(int width) {
      this.width = width;
    }

    public Object transformed(Object value) {
      if (value instanceof UTF8String) {
        return TruncateFunction.invoke(width, (UTF8String) value);
      }
      if (value instanceof byte[]) {
        return ByteBuffer.wrap(TruncateFunction.invoke(width, (byte[]) value));
      }
      if (value instanceof Decimal) {
        return TruncateFunction.invoke(width, (Decimal) value);
      }
      return value instanceof Long
          ? (Object) Long.valueOf(TruncateFunction.invoke(width, ((Long) value).longValue()))
          : (Object) Integer.valueOf(TruncateFunction.invoke(width, ((Number) value).intValue()));
    }
  }

  public static final class Time extends PartitionTransform {
    private final String unit;

    public Time(String unit) {
      this.unit = unit;
    }

    public Object transformed(Object value) {
      if ("hour".equals(unit)) {
        return Integer.valueOf(TimeFunctions.Hours.invoke(((Long) value).longValue()));
      }
      int day = type instanceof DateType
          ? ((Integer) value).intValue() : TimeFunctions.Days.invoke(((Long) value).longValue());
      if ("day".equals(unit)) {
        return Integer.valueOf(day);
      }
      return Integer.valueOf("year".equals(unit) ? TimeFunctions.Years.invoke(day) : TimeFunctions.Months.invoke(day));
    }

    public String text(Object value) {
      return value == null ? "null" : TimeFunctions.text(unit, ((Integer) value).intValue());
    }
  }
}
