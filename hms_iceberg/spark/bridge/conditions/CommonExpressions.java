package hms_iceberg.bridge.conditions;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts expressions back into a condition that name columns of the query below it: Spark computes what stands in a
 * condition twice, as in BETWEEN, in a projection of its own, which a condition that is evaluated elsewhere lacks.
 */
public final class CommonExpressions extends AbstractPartialFunction {
  private static final String PREFIX = "_common_expr_";

  private final Map named = new HashMap();

  private CommonExpressions(LogicalPlan query) {
    collect(query);
  }

  public static Expression inlined(Expression condition, LogicalPlan query) {
    return (Expression) condition.transform(new CommonExpressions(query));
  }

  private void collect(LogicalPlan plan) {
    if (plan instanceof Project) {
      for (Iterator it = CollectionConverters.asJava(((Project) plan).projectList()).iterator(); it.hasNext();) {
        Object column = it.next();
        if (column instanceof Alias && ((Alias) column).name().startsWith(PREFIX)) {
          named.put(((Alias) column).exprId(), ((Alias) column).child());
        }
      }
    }
    for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
      collect((LogicalPlan) it.next());
    }
  }

  public boolean isDefinedAt(Object expression) {
    return expression instanceof AttributeReference && named.containsKey(((AttributeReference) expression).exprId());
  }

  public Object applyOrElse(Object expression, Function1 otherwise) {
    return isDefinedAt(expression)
        ? named.get(((AttributeReference) expression).exprId()) : otherwise.apply(expression);
  }
}
