package hms_iceberg.bridge.conditions;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;

/** variant_get(v, '$.a', 'int') and try_variant_get in a condition: a value's path and type. */
final class VariantText {
  /** Not of Spark 3.5. */
  private static final String GET = "org.apache.spark.sql.catalyst.expressions.variant.VariantGet";

  /** VariantMetadata.METADATA_KEY. */
  private static final String PART = "__VARIANT_METADATA_KEY";
  /** Of what says that the cast of another part failed, since Spark 4.3. */
  private static final String ERROR = "castErrorFor";

  private VariantText() {}

  static boolean isGet(Expression expression) {
    return GET.equals(expression.getClass().getName()) || part(expression) != null;
  }

  /** What Spark says of a value that is read in the place of its variant; null if the expression is no such value. */
  private static Metadata part(Expression expression) {
    if (!(expression instanceof GetStructField)) {
      return null;
    }
    DataType parts = ((GetStructField) expression).child().dataType();
    Metadata part = ((StructType) parts).fields()[((GetStructField) expression).ordinal()].metadata();
    return part.contains(PART) && !part.getMetadata(PART).contains(ERROR) ? part.getMetadata(PART) : null;
  }

  /** What the value is taken from. */
  public static Expression variant(Expression get) {
    return (Expression) get.children().head();
  }

  /** A test of the variant itself becomes one of the value; {"op": "unknown"} if its path is no constant. */
  static ObjectNode onValue(ObjectNode test, Expression get) {
    Metadata part = part(get);
    Object literal = part == null ? get.children().last() : null;
    boolean isKnown = part != null || literal instanceof Literal && ((Literal) literal).value() != null;
    if (isKnown && test.has("column")) {
      ObjectNode value = test.putObject("variant");
      value.put("path", part == null ? ((Literal) literal).value().toString() : part.getString("path"));
      value.put("type", get.dataType().catalogString());
      value.put("raises", part == null ? "variant_get".equals(get.prettyName()) : part.getBoolean("failOnError"));
    } else {
      test.removeAll();
      test.put("op", "unknown");
    }
    return test;
  }
}
