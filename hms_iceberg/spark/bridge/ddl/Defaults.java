package hms_iceberg.bridge.ddl;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Hex;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Values;
import java.time.ZoneOffset;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns$;
import org.apache.spark.sql.catalyst.util.TimestampFormatter;
import org.apache.spark.sql.catalyst.util.TimestampFormatter$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** DEFAULT of a column: the constant that its SQL stands for. */
public final class Defaults {
  /** In a field's metadata, the value as JSON of what an INSERT writes that leaves the column out. */
  public static final String KEY = "iceberg.write-default";

  /** ResolveDefaultColumns.CURRENT_DEFAULT_COLUMN_METADATA_KEY, where Spark has its SQL. */
  public static final String SPARK_KEY = "CURRENT_DEFAULT";

  private Defaults() {}

  /** The SQL of a field's default, which is the same in every session's time zone. */
  public static String sql(StructField field) {
    Object value = Values.of(field.dataType(), Json.read(field.metadata().getString(KEY)));
    if (field.dataType() instanceof TimestampType) {
      TimestampFormatter utc = TimestampFormatter$.MODULE$.getFractionFormatter(ZoneOffset.UTC);
      return "TIMESTAMP '" + utc.format(((Long) value).longValue()) + "Z'";
    }
    return new Literal(value, field.dataType()).sql();
  }

  /** Puts the default's value, as a list of one, into a column's JSON. */
  public static void put(ObjectNode column, String name, DataType type, String sql) {
    ArrayNode value = column.putArray("default");
    if (sql == null || sql.isEmpty()) {
      value.addNull();
      return;
    }
    Expression constant = ResolveDefaultColumns$.MODULE$.analyze(name, type, sql, "DDL");
    if (!constant.foldable() || !DefaultText.isConstant(sql)) {
      throw Failures.of("UnsupportedError: the default " + sql + " of the column " + name + " is not a constant, and an"
          + " Iceberg table can keep constants only. Nothing was changed. Give the value where rows are written.", null);
    }
    add(value, constant.eval(null));
  }

  private static void add(ArrayNode list, Object value) {
    if (value == null) {
      list.addNull();
    } else if (value instanceof Boolean) {
      list.add(((Boolean) value).booleanValue());
    } else if (value instanceof Float || value instanceof Double) {
      addFloating(list, ((Number) value).doubleValue());
    } else if (value instanceof Decimal || value instanceof UTF8String) {
      list.add(value.toString());
    } else if (value instanceof byte[]) {
      list.add(Hex.of((byte[]) value));
    } else if (value instanceof Number) {
      list.add(((Number) value).longValue());
    } else {
      list.add("a value of " + value.getClass().getSimpleName());
    }
  }

  private static void addFloating(ArrayNode list, double value) {
    if (Double.isNaN(value) || Double.isInfinite(value)) {
      list.add(Double.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf");
    } else {
      list.add(value);
    }
  }
}
