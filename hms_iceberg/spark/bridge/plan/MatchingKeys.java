package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.rowlevel.MergeOnRead;
import hms_iceberg.bridge.rowlevel.SameTwice;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;
import scala.runtime.AbstractPartialFunction;

/**
 * A MERGE that leaves files as they are needs only those rows of its target that a row of the source matches. Spark joins
 * all of them, and shuffles them for that, because the source's rows without a match are needed too. If the source's
 * keys are few enough to be broadcast, other rows of the target are left out before.
 */
final class MatchingKeys extends AbstractPartialFunction {
  private final SQLConf conf;

  private MatchingKeys(SQLConf conf) {
    this.conf = conf;
  }

  /** The same write, of the same rows. */
  public static LogicalPlan only(WriteDelta plan, SQLConf conf) {
    LogicalPlan query = (LogicalPlan) plan.query().transformDown(new MatchingKeys(conf));
    return query == plan.query() ? plan : Scan.withChild(plan, query);
  }

  public boolean isDefinedAt(Object plan) {
    return keys(plan) != null;
  }

  public Object applyOrElse(Object plan, Function1 otherwise) {
    Keys keys = keys(plan);
    if (keys == null) {
      return otherwise.apply(plan);
    }
    Join join = (Join) plan;
    Join matched = new Join(
        join.left(), keys.source, LeftSemi$.MODULE$, Option.apply(keys.condition), JoinHint.NONE());
    return new Join(matched, join.right(), join.joinType(), join.condition(), join.hint());
  }

  /** Null if nothing is to be left out. */
  private Keys keys(Object plan) {
    if (!(plan instanceof Join) || ((Join) plan).joinType() != RightOuter$.MODULE$) {
      return null;
    }
    Join join = (Join) plan;
    if (join.condition().isEmpty() || !isTarget(join.left()) || !isSimple(join.right())
        || !SameTwice.is(join.right())) {
      return null;
    }
    Keys keys = Keys.of(join);
    return keys != null && isSmall(keys.source) ? keys : null;
  }

  /** As Spark decides that it broadcasts a side of a join. */
  private boolean isSmall(LogicalPlan plan) {
    BigInt size = plan.stats().sizeInBytes();
    return size.isValidLong() && size.toLong() <= conf.autoBroadcastJoinThreshold();
  }

  private static boolean isTarget(LogicalPlan plan) {
    for (Iterator it = leaves(plan); it.hasNext();) {
      Object leaf = it.next();
      Table table = leaf instanceof DataSourceV2Relation ? ((DataSourceV2Relation) leaf).table() : null;
      if (table instanceof RowLevelOperationTable
          && ((RowLevelOperationTable) table).operation() instanceof MergeOnRead) {
        return true;
      }
    }
    return false;
  }

  private static Iterator leaves(LogicalPlan plan) {
    return CollectionConverters.asJava((Seq) plan.collectLeaves()).iterator();
  }

  /** What costs little to run a second time. */
  private static boolean isSimple(LogicalPlan plan) {
    List children = CollectionConverters.asJava((Seq) plan.children());
    boolean simple =
        children.isEmpty() || plan instanceof Project || plan instanceof Filter || plan instanceof Union;
    for (int i = 0; simple && i < children.size(); i++) {
      simple = isSimple((LogicalPlan) children.get(i));
    }
    return simple;
  }

  /** The source's side of what must be equal, and the condition that it is. */
  public static final class Keys {
    public final LogicalPlan source;
    public final Expression condition;

    private Keys(LogicalPlan source, Expression condition) {
      this.source = source;
      this.condition = condition;
    }

    public static Keys of(Join join) {
      List projected = new ArrayList();
      Expression condition = collect((Expression) join.condition().get(), join, projected);
      return condition == null
          ? null : new Keys(new Project(CollectionTools.seq(projected), join.right()), condition);
    }

    /** What is left of a condition when only equality of the two sides is looked at; null for nothing. */
    private static Expression collect(Expression condition, Join join, List projected) {
      if (condition instanceof And) {
        Expression left = collect(((And) condition).left(), join, projected);
        Expression right = collect(((And) condition).right(), join, projected);
        return left == null ? right : right == null ? left : new And(left, right);
      }
      if (!(condition instanceof EqualTo) || !condition.deterministic()) {
        return null;
      }
      Expression left = ((EqualTo) condition).left();
      Expression right = ((EqualTo) condition).right();
      if (isOf(left, join.left()) && isOf(right, join.right())) {
        return new EqualTo(left, key(right, projected));
      }
      return isOf(right, join.left()) && isOf(left, join.right()) ? new EqualTo(right, key(left, projected)) : null;
    }

    private static boolean isOf(Expression side, LogicalPlan plan) {
      return !side.references().isEmpty() && side.references().subsetOf(plan.outputSet());
    }

    private static Expression key(Expression side, List projected) {
      Alias key = new Alias(
          side, "key_" + projected.size(), NamedExpression$.MODULE$.newExprId(), CollectionTools.seq(new ArrayList()),
          Option.empty(), CollectionTools.seq(new ArrayList()));
      projected.add(key);
      return (Expression) key.toAttribute();
    }
  }
}
