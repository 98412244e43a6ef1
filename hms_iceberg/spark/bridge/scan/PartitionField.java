package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.partitions.PartitionTransform;
import hms_iceberg.bridge.wire.Json;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.IntegerType$;

/** A field by which the files of a spec are partitioned, whose values follow from those of a column. */
public final class PartitionField {
  /** The names from the table's column down to the field. */
  public final String[] column;
  public final DataType source;
  /** Of its values. */
  public final DataType type;
  private final PartitionTransform transform;
  private final String name;
  private final int width;

  private PartitionField(JsonNode field) {
    JsonNode path = field.get("column");
    this.column = new String[path.size()];
    for (int i = 0; i < column.length; i++) {
      column[i] = Json.at(path, i).asText();
    }
    this.name = field.get("transform").asText();
    this.width = field.get("width").asInt();
    this.transform = PartitionTransform.of(field);
    this.source = transform.type;
    boolean keeps = "identity".equals(name) || "truncate".equals(name);
    this.type = keeps ? source : "day".equals(name) ? (DataType) DateType$.MODULE$ : IntegerType$.MODULE$;
  }

  /** Null for a field that says nothing of a column's values. */
  public static PartitionField of(JsonNode field) {
    return field.isNull() ? null : new PartitionField(field);
  }

  /** A value of the column as one of the field, to be compared with those. */
  Object transformed(Object value) {
    return comparable(transform.transformed(value));
  }

  static Object comparable(Object value) {
    return value instanceof byte[] ? ByteBuffer.wrap((byte[]) value) : withoutSign(value);
  }

  /** Spark takes the two zeros for one. */
  static Object withoutSign(Object value) {
    if (value instanceof Double) {
      return Double.valueOf(((Double) value).doubleValue() + 0.0);
    }
    return value instanceof Float ? Float.valueOf(((Float) value).floatValue() + 0.0f) : value;
  }

  /** What Spark may group rows by; null for what it has no use for, which is a function with a width. */
  public Expression key() {
    String quoted = quoted();
    if ("identity".equals(name)) {
      return Expressions.identity(quoted);
    }
    if ("truncate".equals(name)) {
      return null;
    }
    List arguments = new ArrayList();
    if ("bucket".equals(name)) {
      arguments.add(Expressions.literal(Integer.valueOf(width)));
    }
    arguments.add(Expressions.column(quoted));
    String function = "bucket".equals(name) ? name : name + "s";
    return Expressions.apply(function, (Expression[]) arguments.toArray(new Expression[0]));
  }

  private String quoted() {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < column.length; i++) {
      text.append(i == 0 ? "`" : ".`").append(column[i].replace("`", "``")).append('`');
    }
    return text.toString();
  }
}
