package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values that come as JSON, in Spark's internal form. */
public final class Values {
  private Values() {}

  public static Object of(DataType type, JsonNode value) {
    if (value == null || value.isNull() || type instanceof NullType) {
      return null;
    }
    if (type instanceof BooleanType) {
      return Boolean.valueOf(value.asBoolean());
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(value.asInt());
    }
    if (type instanceof FloatType) {
      return Float.valueOf(value.isTextual() ? Float.parseFloat(value.asText()) : (float) value.asDouble());
    }
    if (type instanceof DoubleType) {
      return Double.valueOf(value.isTextual() ? Double.parseDouble(value.asText()) : value.asDouble());
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(value.asText());
    }
    if (type instanceof BinaryType) {
      return Hex.bytes(value.asText());
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new BigDecimal(value.asText()), decimal.precision(), decimal.scale());
    }
    if (value.isIntegralNumber()) {
      return Long.valueOf(value.asLong());
    }
    throw new IllegalArgumentException("A constant of type " + type.sql() + " cannot be read from " + value);
  }

  /** The other way: a value in Spark's internal form as JSON. */
  public static JsonNode json(DataType type, Object value) {
    if (value == null) {
      return Json.MAPPER.nullNode();
    }
    if (type instanceof ArrayType) {
      ArrayNode array = Json.MAPPER.createArrayNode();
      DataType element = ((ArrayType) type).elementType();
      Object[] values = ((ArrayData) value).toObjectArray(element);
      for (int i = 0; i < values.length; i++) {
        array.add(json(element, values[i]));
      }
      return array;
    }
    if (type instanceof MapType) {
      ObjectNode object = Json.MAPPER.createObjectNode();
      MapType map = (MapType) type;
      Object[] keys = ((MapData) value).keyArray().toObjectArray(map.keyType());
      Object[] values = ((MapData) value).valueArray().toObjectArray(map.valueType());
      for (int i = 0; i < keys.length; i++) {
        object.set(String.valueOf(keys[i]), json(map.valueType(), values[i]));
      }
      return object;
    }
    return value instanceof UTF8String || value instanceof Decimal
        ? Json.MAPPER.valueToTree(value.toString()) : Json.MAPPER.valueToTree(value);
  }
}
