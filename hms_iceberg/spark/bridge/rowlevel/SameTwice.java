package hms_iceberg.bridge.rowlevel;

import hms_iceberg.bridge.table.DescribedTable;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Tail;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Whether a plan surely has the same rows when it runs again: over files, snapshots and constants, by steps that leave
 * nothing to the order in which rows come or to functions of users.
 */
public final class SameTwice {
  private SameTwice() {}

  public static boolean is(LogicalPlan plan) {
    if (!plan.deterministic() || dependsOnOrder(plan)) {
      return false;
    }
    if (CollectionConverters.asJava((Seq) plan.children()).isEmpty() && !isFixed(plan)) {
      return false;
    }
    for (Iterator it = CollectionConverters.asJava((Seq) plan.children()).iterator(); it.hasNext();) {
      if (!is((LogicalPlan) it.next())) {
        return false;
      }
    }
    for (Iterator it = CollectionConverters.asJava((Seq) plan.expressions()).iterator(); it.hasNext();) {
      Expression expression = (Expression) it.next();
      if (callsUsers(expression) || !is(expression)) {
        return false;
      }
    }
    return true;
  }

  /** The same of the queries in a condition. */
  public static boolean is(Expression condition) {
    if (condition instanceof SubqueryExpression && !is((LogicalPlan) ((SubqueryExpression) condition).plan())) {
      return false;
    }
    for (Iterator it = CollectionConverters.asJava((Seq) condition.children()).iterator(); it.hasNext();) {
      if (!is((Expression) it.next())) {
        return false;
      }
    }
    return condition.deterministic();
  }

  /** Functions of users count as deterministic unless their users say otherwise, which few do. */
  private static boolean callsUsers(Expression expression) {
    if (expression instanceof UserDefinedExpression) {
      return true;
    }
    for (Iterator it = CollectionConverters.asJava((Seq) expression.children()).iterator(); it.hasNext();) {
      if (callsUsers((Expression) it.next())) {
        return true;
      }
    }
    return false;
  }

  /** Which rows are taken, or what is said of them, may be otherwise if they come in another order. */
  private static boolean dependsOnOrder(LogicalPlan plan) {
    return plan instanceof GlobalLimit || plan instanceof LocalLimit || plan instanceof Offset || plan instanceof Tail
        || plan instanceof Sample || plan instanceof Window || plan instanceof Deduplicate;
  }

  /** A database, or a source that nothing is known of, may have other rows at any time. */
  private static boolean isFixed(LogicalPlan leaf) {
    if (leaf instanceof LogicalRelation) {
      return ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation;
    }
    if (leaf instanceof DataSourceV2Relation) {
      return ((DataSourceV2Relation) leaf).table() instanceof DescribedTable;
    }
    if (leaf instanceof DataSourceV2ScanRelation) {
      return isFixed(((DataSourceV2ScanRelation) leaf).relation());
    }
    return leaf instanceof LocalRelation || leaf instanceof Range || leaf instanceof OneRowRelation
        || leaf instanceof InMemoryRelation || leaf instanceof LogicalRDD || leaf instanceof HiveTableRelation;
  }
}
