package hms_iceberg.bridge.ddl;

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.LeafExpression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import scala.collection.Iterator;

/** Tells defaults that are the same at any time from those that are not: Spark folds the time of now like a number. */
final class DefaultText {
  private DefaultText() {}

  static boolean isConstant(String sql) {
    return isConstant(CatalystSqlParser$.MODULE$.parseExpression(sql));
  }

  private static boolean isConstant(Expression expression) {
    if (expression instanceof UnresolvedFunction || expression instanceof UnresolvedAttribute
        || expression instanceof LeafExpression && !(expression instanceof Literal)) {
      return false;
    }
    for (Iterator it = expression.children().iterator(); it.hasNext();) {
      if (!isConstant((Expression) it.next())) {
        return false;
      }
    }
    return true;
  }
}
