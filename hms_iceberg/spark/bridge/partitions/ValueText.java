package hms_iceberg.bridge.partitions;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import hms_iceberg.bridge.wire.Hex;
import java.nio.ByteBuffer;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Values as JSON for Python, in Spark's internal form, which for dates and times is Iceberg's too. */
public final class ValueText {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private ValueText() {}

  /** Null if the value has no form in JSON. */
  public static JsonNode of(Object value) {
    if (value == null) {
      return NODES.nullNode();
    }
    if (value instanceof Boolean) {
      return NODES.booleanNode(((Boolean) value).booleanValue());
    }
    if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long) {
      return (JsonNode) NODES.numberNode(((Number) value).longValue());
    }
    if (value instanceof Float || value instanceof Double) {
      double number = ((Number) value).doubleValue();
      return Double.isNaN(number) || Double.isInfinite(number)
          ? (JsonNode) NODES.textNode(Double.toString(number)) : (JsonNode) NODES.numberNode(number);
    }
    if (value instanceof UTF8String) {
      return NODES.textNode(value.toString());
    }
    if (value instanceof Decimal) {
      return NODES.textNode(((Decimal) value).toJavaBigDecimal().toPlainString());
    }
    if (value instanceof byte[]) {
      return NODES.textNode(Hex.of((byte[]) value));
    }
    return value instanceof ByteBuffer ? NODES.textNode(Hex.of(((ByteBuffer) value).array())) : null;
  }
}
