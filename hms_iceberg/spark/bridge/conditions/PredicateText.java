package hms_iceberg.bridge.conditions;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.partitions.ValueText;
import hms_iceberg.bridge.wire.Json;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Spark's predicates of the connectors' kind as the same JSON as FilterText makes of conditions. */
public final class PredicateText {
  private static final Map OPERATIONS = new HashMap();
  private static final Map FLIPPED = new HashMap();

  static {
    String[] names = {"=", "<=>", "<", "<=", ">", ">=", "STARTS_WITH"};
    String[] operations = {"eq", "eq-null-safe", "lt", "lt-eq", "gt", "gt-eq", "starts-with"};
    String[] flipped = {"eq", "eq-null-safe", "gt", "gt-eq", "lt", "lt-eq", null};
    for (int i = 0; i < names.length; i++) {
      OPERATIONS.put(names[i], operations[i]);
      FLIPPED.put(names[i], flipped[i]);
    }
  }

  private PredicateText() {}

  /** All of them hold. What has no counterpart is {"op": "unknown"}. */
  public static ObjectNode of(Predicate[] predicates) {
    ObjectNode all = node("true");
    for (int i = 0; i < predicates.length; i++) {
      ObjectNode one = of(predicates[i]);
      if ("true".equals(all.get("op").asText())) {
        all = one;
      } else if (!"true".equals(one.get("op").asText())) {
        ObjectNode both = node("and");
        both.putArray("children").add(all).add(one);
        all = both;
      }
    }
    return all;
  }

  public static ObjectNode of(Predicate predicate) {
    String name = predicate.name();
    Expression[] children = predicate.children();
    if ("ALWAYS_TRUE".equals(name) || "ALWAYS_FALSE".equals(name)) {
      return node("ALWAYS_TRUE".equals(name) ? "true" : "false");
    }
    if ("AND".equals(name) || "OR".equals(name) || "NOT".equals(name)) {
      ObjectNode node = node(name.toLowerCase(java.util.Locale.ROOT));
      ArrayNode nodes = node.putArray("children");
      for (int i = 0; i < children.length; i++) {
        nodes.add(children[i] instanceof Predicate ? of((Predicate) children[i]) : node("unknown"));
      }
      return node;
    }
    if ("IS_NULL".equals(name) || "IS_NOT_NULL".equals(name)) {
      return onColumn("IS_NULL".equals(name) ? "is-null" : "not-null", children[0]);
    }
    if ("IN".equals(name)) {
      return membership(children);
    }
    return OPERATIONS.containsKey(name) && children.length == 2 ? comparison(name, children) : node("unknown");
  }

  private static ObjectNode comparison(String name, Expression[] children) {
    boolean swapped = children[0] instanceof Literal;
    String op = (String) (swapped ? FLIPPED : OPERATIONS).get(name);
    Expression value = swapped ? children[0] : children[1];
    JsonNode text = value instanceof Literal ? ValueText.of(((Literal) value).value()) : null;
    if (op == null || text == null) {
      return node("unknown");
    }
    ObjectNode node = onColumn(op, swapped ? children[1] : children[0]);
    node.set("value", text);
    return node;
  }

  private static ObjectNode membership(Expression[] children) {
    ObjectNode node = onColumn("in", children[0]);
    ArrayNode values = node.putArray("values");
    for (int i = 1; i < children.length; i++) {
      JsonNode text = children[i] instanceof Literal ? ValueText.of(((Literal) children[i]).value()) : null;
      if (text == null) {
        return node("unknown");
      }
      values.add(text);
    }
    return node;
  }

  private static ObjectNode onColumn(String op, Expression column) {
    if (!(column instanceof NamedReference)) {
      return node("unknown");
    }
    ObjectNode node = node(op);
    ArrayNode path = node.putArray("column");
    String[] names = ((NamedReference) column).fieldNames();
    for (int i = 0; i < names.length; i++) {
      path.add(names[i]);
    }
    return node;
  }

  private static ObjectNode node(String op) {
    ObjectNode node = Json.MAPPER.createObjectNode();
    node.put("op", op);
    return node;
  }
}
