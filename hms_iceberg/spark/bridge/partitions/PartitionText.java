package hms_iceberg.bridge.partitions;

import hms_iceberg.bridge.functions.TimeFunctions;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import org.apache.spark.sql.types.Decimal;

/** Partition values as folders show them, spelled as Iceberg's Java implementation spells them. */
final class PartitionText {
  private PartitionText() {}

  /** A value of a column of one of Iceberg's types. */
  public static String of(String type, Object value) {
    if ("date".equals(type)) {
      return TimeFunctions.date(((Integer) value).intValue()).toString();
    }
    if ("time".equals(type)) {
      return DateTimeFormatter.ISO_LOCAL_TIME.format(LocalTime.ofNanoOfDay(((Long) value).longValue()));
    }
    if (type.startsWith("timestamp")) {
      long perSecond = type.endsWith("_ns") ? 1000000000L : 1000000L;
      String text = DateTimeFormatter.ISO_LOCAL_DATE_TIME.format(
          at(((Long) value).longValue(), perSecond).toLocalDateTime());
      return type.startsWith("timestamptz") ? text + "+00:00" : text;
    }
    if (value instanceof ByteBuffer) {
      return Base64.getEncoder().encodeToString(((ByteBuffer) value).array());
    }
    return value instanceof Decimal ? ((Decimal) value).toJavaBigDecimal().toPlainString() : value.toString();
  }

  private static OffsetDateTime at(long time, long perSecond) {
    long nanos = Math.floorMod(time, perSecond) * (1000000000L / perSecond);
    return Instant.ofEpochSecond(Math.floorDiv(time, perSecond), nanos).atOffset(ZoneOffset.UTC);
  }
}
