package hms_iceberg.bridge.functions;

import java.time.LocalDate;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** years, months, days and hours since 1970 in UTC, of dates (days) and of timestamps (microseconds). */
public final class TimeFunctions {
  private static final long MICROS_PER_HOUR = 3600000000L;
  private static final long MICROS_PER_DAY = 24 * MICROS_PER_HOUR;

  private TimeFunctions() {}

  public static ScalarFunction of(String name, DataType value) {
    if ("years".equals(name)) {
      return new Years(value);
    }
    if ("months".equals(name)) {
      return new Months(value);
    }
    return "days".equals(name) ? (ScalarFunction) new Days(value) : (ScalarFunction) new Hours(value);
  }

  /** What one of the classes counts, as Iceberg names the transform; null for another class. */
  public static String unit(Class function) {
    return function == Years.class ? "year" : function == Months.class ? "month"
        : function == Days.class ? "day" : function == Hours.class ? "hour" : null;
  }

  /** A number of years, months, days or hours since 1970, as folders show it. */
  public static String text(String unit, int value) {
    if ("year".equals(unit)) {
      return String.format(Locale.ROOT, "%04d", new Object[] {Integer.valueOf(1970 + value)});
    }
    if ("month".equals(unit)) {
      return String.format(Locale.ROOT, "%04d-%02d", new Object[] {
          Integer.valueOf(1970 + Math.floorDiv(value, 12)), Integer.valueOf(1 + Math.floorMod(value, 12))});
    }
    if ("day".equals(unit)) {
      return date(value).toString();
    }
    return date(Math.floorDiv(value, 24)) + String.format(Locale.ROOT, "-%02d", new Object[] {
        Integer.valueOf(Math.floorMod(value, 24))});
  }

  public static LocalDate date(int days) {
    return LocalDate.ofEpochDay((long) days);
  }

  public static int days(long micros) {
    return (int) Math.floorDiv(micros, MICROS_PER_DAY);
  }

  public static abstract class TimeFunction extends TransformFunction {
    TimeFunction(String name, DataType value, DataType result) {
      super(name, new DataType[] {accepted(name, value)}, result);
    }

    private static DataType accepted(String name, DataType type) {
      boolean isDate = type instanceof DateType && !"hours".equals(name);
      if (!isDate && !(type instanceof TimestampType) && !(type instanceof TimestampNTZType)) {
        throw refusal("hours".equals(name) ? "timestamp" : "date or timestamp", type);
      }
      return type;
    }

    Object result(InternalRow arguments) {
      return Integer.valueOf(
          value() instanceof DateType ? ofDate(arguments.getInt(0)) : ofTimestamp(arguments.getLong(0)));
    }

    abstract int ofDate(int days);

    int ofTimestamp(long micros) {
      return ofDate(days(micros));
    }
  }

  public static final class Years extends TimeFunction {
    Years(DataType value) {
      super("years", value, DataTypes.IntegerType);
    }

    public static int invoke(int days) {
      return date(days).getYear() - 1970;
    }

    public static int invoke(long micros) {
      return invoke(days(micros));
    }

    int ofDate(int days) {
      return invoke(days);
    }
  }

  public static final class Months extends TimeFunction {
    Months(DataType value) {
      super("months", value, DataTypes.IntegerType);
    }

    public static int invoke(int days) {
      LocalDate date = date(days);
      return 12 * (date.getYear() - 1970) + date.getMonthValue() - 1;
    }

    public static int invoke(long micros) {
      return invoke(days(micros));
    }

    int ofDate(int days) {
      return invoke(days);
    }
  }

  public static final class Days extends TimeFunction {
    Days(DataType value) {
      super("days", value, DataTypes.DateType);
    }

    public static int invoke(int days) {
      return days;
    }

    public static int invoke(long micros) {
      return days(micros);
    }

    int ofDate(int days) {
      return days;
    }
  }

  public static final class Hours extends TimeFunction {
    Hours(DataType value) {
      super("hours", value, DataTypes.IntegerType);
    }

    public static int invoke(long micros) {
      return (int) Math.floorDiv(micros, MICROS_PER_HOUR);
    }

    int ofDate(int days) {
      throw new IllegalStateException("hours is not defined for dates");
    }

    int ofTimestamp(long micros) {
      return invoke(micros);
    }
  }
}
