package hms_iceberg.bridge.conditions;

import hms_iceberg.bridge.functions.BucketFunction;
import hms_iceberg.bridge.functions.TimeFunctions;
import hms_iceberg.bridge.functions.TruncateFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;

/** A call of one of our functions in a condition, as Iceberg writes the transform: bucket[4], days. */
final class TransformText {
  private TransformText() {}

  /** Null if the expression is something else. */
  public static String of(Expression expression) {
    if (!(expression instanceof StaticInvoke)) {
      return null;
    }
    Class function = ((StaticInvoke) expression).staticObject();
    if (function == BucketFunction.class || function == TruncateFunction.class) {
      Expression number = (Expression) expression.children().head();
      if (!(number instanceof Literal) || ((Literal) number).value() == null) {
        return null;
      }
      return (function == BucketFunction.class ? "bucket[" : "truncate[") + ((Literal) number).value() + "]";
    }
    return TimeFunctions.unit(function);
  }

  /** What is transformed. */
  public static Expression source(Expression call) {
    return (Expression) call.children().last();
  }
}
