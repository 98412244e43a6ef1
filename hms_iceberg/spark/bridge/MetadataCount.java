package hms_iceberg.bridge;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.LongType$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** select count(*): manifests know how many rows a file has. */
final class MetadataCount {
  private MetadataCount() {}

  /** Whether nothing but numbers of rows is asked for. */
  static boolean isCount(LogicalPlan plan) {
    if (!(plan instanceof Aggregate) || !((Aggregate) plan).groupingExpressions().isEmpty()) {
      return false;
    }
    Replace probe = new Replace(0);
    List replaced = replace((Aggregate) plan, probe);
    for (int i = 0; i < replaced.size(); i++) {
      if (!((Expression) replaced.get(i)).references().isEmpty()) {
        return false;
      }
    }
    return probe.counts > 0 && !probe.other;
  }

  /** The plan of the counts, which reads nothing. */
  static LogicalPlan constant(LogicalPlan plan, long rows) {
    return new Project(CollectionTools.seq(replace((Aggregate) plan, new Replace(rows))), new OneRowRelation());
  }

  private static List replace(Aggregate plan, Replace replace) {
    List replaced = new ArrayList();
    for (Iterator it = CollectionConverters.asJava(plan.aggregateExpressions()).iterator(); it.hasNext();) {
      replaced.add(((TreeNode) it.next()).transform(replace));
    }
    return replaced;
  }

  static final class Replace extends AbstractPartialFunction {
    private final long rows;
    int counts;
    boolean other;

    Replace(long rows) {
      this.rows = rows;
    }

    public boolean isDefinedAt(Object expression) {
      return expression instanceof AggregateExpression;
    }

    public Object applyOrElse(Object expression, scala.Function1 otherwise) {
      if (!(expression instanceof AggregateExpression)) {
        return otherwise.apply(expression);
      }
      AggregateExpression aggregate = (AggregateExpression) expression;
      if (!(aggregate.aggregateFunction() instanceof Count) || aggregate.isDistinct()
          || aggregate.filter().isDefined()) {
        other = true;
        return expression;
      }
      for (Iterator it = CollectionConverters.asJava(aggregate.aggregateFunction().children()).iterator();
          it.hasNext();) {
        Object counted = it.next();
        other = other || !(counted instanceof Literal) || ((Literal) counted).value() == null;
      }
      counts++;
      return new Literal(Long.valueOf(rows), LongType$.MODULE$);
    }
  }
}
