package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.conditions.FilterText;
import hms_iceberg.bridge.wire.Failures;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding;
import org.apache.spark.sql.catalyst.optimizer.LikeSimplification;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** The condition that the argument `where` of a procedure holds as SQL, resolved against the procedure's table. */
final class WhereArgument {
  private WhereArgument() {}

  /** The condition as FilterText writes it. */
  static JsonNode resolve(SparkSession session, String table, String text) {
    LogicalPlan plan;
    try {
      plan = ((Dataset) session.sql("SELECT * FROM " + table + " WHERE " + text)).queryExecution().analyzed();
    } catch (Exception e) {
      throw Failures.of("InvalidInputError: Cannot parse predicates in where option: " + text + " ("
          + e.getMessage().trim() + ")", e);
    }
    plan = (LogicalPlan) UnwrapCastInBinaryComparison.apply((LogicalPlan) ConstantFolding.apply(plan));
    plan = (LogicalPlan) LikeSimplification.apply(plan);
    Filter filter = find(plan);
    if (filter == null) {
      throw Failures.of("InvalidInputError: Cannot parse predicates in where option: " + text + " (it is more than a"
          + " condition)", null);
    }
    Expression condition = filter.condition();
    return FilterText.of(condition, CollectionConverters.asJava(filter.child().output()));
  }

  private static Filter find(LogicalPlan plan) {
    for (Iterator it = plan.children().iterator(); it.hasNext();) {
      LogicalPlan child = (LogicalPlan) it.next();
      if (child instanceof Filter) {
        return (Filter) child;
      }
    }
    return null;
  }
}
