package hms_iceberg.bridge.conditions;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;

/** variant_get(v, '$.a', 'int') and try_variant_get in a condition: a value's path and type. */
final class VariantText {
  /** Not of Spark 3.5. */
  private static final String GET = "org.apache.spark.sql.catalyst.expressions.variant.VariantGet";

  private VariantText() {}

  static boolean isGet(Expression expression) {
    return GET.equals(expression.getClass().getName());
  }

  /** What the value is taken from. */
  public static Expression variant(Expression get) {
    return (Expression) get.children().head();
  }

  /** A test of the variant itself becomes one of the value; {"op": "unknown"} if its path is no constant. */
  static ObjectNode onValue(ObjectNode test, Expression get) {
    Object path = get.children().last();
    boolean isKnown = path instanceof Literal && ((Literal) path).value() != null;
    if (isKnown && test.has("column")) {
      ObjectNode value = test.putObject("variant");
      value.put("path", ((Literal) path).value().toString());
      value.put("type", get.dataType().catalogString());
      value.put("raises", "variant_get".equals(get.prettyName()));
    } else {
      test.removeAll();
      test.put("op", "unknown");
    }
    return test;
  }
}
