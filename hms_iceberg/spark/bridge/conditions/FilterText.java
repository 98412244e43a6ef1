package hms_iceberg.bridge.conditions;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.partitions.ValueText;
import hms_iceberg.bridge.wire.Json;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNaN;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.types.BooleanType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A condition of Spark as JSON text for the planner. What has no counterpart becomes {"op": "unknown"}: the
 * planner then keeps every file that might matter, and Spark evaluates the whole condition on the rows anyway.
 */
public final class FilterText {
  private final List columns;

  private FilterText(List columns) {
    this.columns = columns;
  }

  /** The condition's text; columns are the attributes of the table. */
  public static ObjectNode of(Expression condition, List columns) {
    return new FilterText(columns).of(condition);
  }

  private ObjectNode of(Expression expression) {
    if (expression instanceof And || expression instanceof Or) {
      return node(expression instanceof And ? "and" : "or", children(expression));
    }
    if (expression instanceof Not) {
      return node("not", children(expression));
    }
    if (expression instanceof EqualTo) {
      return comparison("eq", "eq", expression);
    }
    if (expression instanceof EqualNullSafe) {
      return comparison("eq-null-safe", "eq-null-safe", expression);
    }
    if (expression instanceof LessThan) {
      return comparison("lt", "gt", expression);
    }
    if (expression instanceof LessThanOrEqual) {
      return comparison("lt-eq", "gt-eq", expression);
    }
    if (expression instanceof GreaterThan) {
      return comparison("gt", "lt", expression);
    }
    if (expression instanceof GreaterThanOrEqual) {
      return comparison("gt-eq", "lt-eq", expression);
    }
    if (expression instanceof StartsWith) {
      return comparison("starts-with", null, expression);
    }
    if (expression instanceof IsNull || expression instanceof IsNotNull || expression instanceof IsNaN) {
      String op = expression instanceof IsNull ? "is-null" : expression instanceof IsNotNull ? "not-null" : "is-nan";
      return onNull(op, (Expression) expression.children().head());
    }
    if (expression instanceof In) {
      return membership(((In) expression).value(), CollectionConverters.asJava(((In) expression).list()));
    }
    if (expression instanceof InSet) {
      return setMembership((InSet) expression);
    }
    if (expression instanceof Literal && ((Literal) expression).dataType() instanceof BooleanType) {
      Object value = ((Literal) expression).value();
      return node(Boolean.TRUE.equals(value) ? "true" : "false", null);
    }
    if (expression.dataType() instanceof BooleanType && column(expression) != null) {
      ObjectNode node = onColumn("eq", expression);
      node.put("value", true);
      return node;
    }
    return unknown();
  }

  private static ObjectNode unknown() {
    return node("unknown", null);
  }

  private static ObjectNode node(String op, ArrayNode children) {
    ObjectNode node = Json.MAPPER.createObjectNode();
    node.put("op", op);
    if (children != null) {
      node.set("children", children);
    }
    return node;
  }

  private ArrayNode children(Expression expression) {
    ArrayNode nodes = Json.MAPPER.createArrayNode();
    for (Iterator it = CollectionConverters.asJava(expression.children()).iterator(); it.hasNext();) {
      nodes.add(of((Expression) it.next()));
    }
    return nodes;
  }

  private ObjectNode onColumn(String op, Expression child) {
    return onTerm(op, column(child), null);
  }

  /** A transform is null if its source is. */
  private ObjectNode onNull(String op, Expression child) {
    if (VariantText.isGet(child)) {
      return onTerm(op, child);
    }
    return onColumn(op, TransformText.of(child) == null ? child : TransformText.source(child));
  }

  /** A test of a column, of a transform of one (system.bucket(4, id)), or of a value within a variant. */
  private ObjectNode onTerm(String op, Expression term) {
    if (VariantText.isGet(term)) {
      return VariantText.onValue(onColumn(op, VariantText.variant(term)), term);
    }
    String transform = TransformText.of(term);
    return onTerm(op, column(transform == null ? term : TransformText.source(term)), transform);
  }

  private static ObjectNode onTerm(String op, ArrayNode path, String transform) {
    if (path == null) {
      return unknown();
    }
    ObjectNode node = node(op, null);
    node.set("column", path);
    if (transform != null) {
      node.put("transform", transform);
    }
    return node;
  }

  private ObjectNode comparison(String op, String flipped, Expression expression) {
    Expression left = (Expression) expression.children().apply(0);
    Expression right = (Expression) expression.children().apply(1);
    if (left instanceof Literal && flipped != null) {
      Expression swapped = left;
      left = right;
      right = swapped;
      op = flipped;
    }
    ObjectNode node = "starts-with".equals(op) && !VariantText.isGet(left) ? onColumn(op, left) : onTerm(op, left);
    if (!node.has("column") || !(right instanceof Literal)) {
      return unknown();
    }
    return putValue(node, "value", ((Literal) right).value()) ? node : unknown();
  }

  private ObjectNode membership(Expression value, List list) {
    List values = new ArrayList();
    for (int i = 0; i < list.size(); i++) {
      if (!(list.get(i) instanceof Literal)) {
        return unknown();
      }
      values.add(((Literal) list.get(i)).value());
    }
    return membershipOf(value, values);
  }

  private ObjectNode setMembership(InSet set) {
    List values = new ArrayList();
    for (scala.collection.Iterator it = set.hset().iterator(); it.hasNext();) {
      values.add(it.next());
    }
    return membershipOf(set.child(), values);
  }

  private ObjectNode membershipOf(Expression value, List values) {
    ObjectNode node = onTerm("in", value);
    if (!node.has("column")) {
      return node;
    }
    ArrayNode array = node.putArray("values");
    for (int i = 0; i < values.size(); i++) {
      ObjectNode holder = Json.MAPPER.createObjectNode();
      if (!putValue(holder, "value", values.get(i))) {
        return unknown();
      }
      array.add(holder.get("value"));
    }
    return node;
  }

  /** The names from the table's column down to the field, or null if the expression is something else. */
  private ArrayNode column(Expression expression) {
    if (expression instanceof Attribute) {
      return ownName((Attribute) expression);
    }
    if (expression instanceof GetStructField) {
      GetStructField field = (GetStructField) expression;
      ArrayNode path = column(field.child());
      if (path != null) {
        path.add(field.childSchema().fields()[field.ordinal()].name());
      }
      return path;
    }
    return null;
  }

  /** The name as the table has it; in a query it may stand in another case. */
  private ArrayNode ownName(Attribute attribute) {
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      if (column.exprId().equals(attribute.exprId())) {
        ArrayNode path = Json.MAPPER.createArrayNode();
        path.add(column.name());
        return path;
      }
    }
    return null;
  }

  private static boolean putValue(ObjectNode node, String key, Object value) {
    JsonNode text = ValueText.of(value);
    if (text != null) {
      node.set(key, text);
    }
    return text != null;
  }
}
