package hms_iceberg.bridge.ddl;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;

/** What CREATE TABLE and REPLACE TABLE say, as JSON for Python. */
public final class Definitions {
  private Definitions() {}

  /** Puts a definition into a question about a table. */
  public static ObjectNode define(ObjectNode question, Column[] columns, Transform[] partitions, Map properties) {
    ArrayNode defined = question.putArray("columns");
    for (int i = 0; i < columns.length; i++) {
      ObjectNode column = column(columns[i].name(), columns[i].dataType(), columns[i].nullable(), columns[i].comment());
      // A default without a value is that of a table which AS SELECT reads.
      if (columns[i].defaultValue() != null && columns[i].defaultValue().getValue() != null) {
        Defaults.put(column, columns[i].name(), columns[i].dataType(), SparkVersions.sql(columns[i].defaultValue()));
      }
      defined.add(column);
    }
    ArrayNode terms = question.putArray("partitioning");
    for (int i = 0; i < partitions.length; i++) {
      terms.add(term(partitions[i]));
    }
    question.set("properties", Json.MAPPER.valueToTree(properties));
    return question;
  }

  public static ObjectNode column(String name, DataType type, boolean nullable, String comment) {
    ObjectNode column = Json.MAPPER.createObjectNode();
    column.put("name", name);
    column.set("type", type(type));
    column.put("nullable", nullable);
    column.put("comment", comment);
    return column;
  }

  public static JsonNode type(DataType type) {
    try {
      return Json.MAPPER.readTree(type.json());
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("Spark's type " + type + " has no readable JSON", e);
    }
  }

  /** A transform by its name, the columns that it names, and its number, in whichever order they stand. */
  static ObjectNode term(Transform transform) {
    ObjectNode term = Json.MAPPER.createObjectNode();
    term.put("transform", transform.name());
    ArrayNode columns = term.putArray("columns");
    Expression[] arguments = transform.arguments();
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i] instanceof NamedReference) {
        columns.add(Json.MAPPER.valueToTree(((NamedReference) arguments[i]).fieldNames()));
      } else if (arguments[i] instanceof Literal && ((Literal) arguments[i]).value() instanceof Number) {
        term.put("number", ((Number) ((Literal) arguments[i]).value()).longValue());
      }
    }
    return term;
  }
}
