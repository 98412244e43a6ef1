package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.deletes.PositionSet;
import hms_iceberg.bridge.rowlevel.CopyOnWrite;
import hms_iceberg.bridge.wire.CollectionTools;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.NO_BROADCAST_AND_REPLICATION$;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.BooleanType$;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * A MERGE that does nothing to matched rows, and replaces files, writes them again: each once, however many rows of the
 * source match it. Spark writes one for each match, because without a WHEN MATCHED clause it does not look for two.
 */
public final class CarriedOnce extends Rule {
  private static final String ROW = "__carried_row";

  public TreeNode apply(TreeNode plan) {
    boolean copies = plan instanceof ReplaceData && ((ReplaceData) plan).operation() instanceof CopyOnWrite;
    return copies ? (TreeNode) ((LogicalPlan) plan).transformDown(new Carried()) : plan;
  }

  static final class Carried extends AbstractPartialFunction {
    /** Where there is one instruction for matched rows, it is to carry them over. */
    public boolean isDefinedAt(Object plan) {
      return plan instanceof MergeRows && ((MergeRows) plan).matchedInstructions().size() == 1
          && !((MergeRows) plan).checkCardinality() && ((MergeRows) plan).child() instanceof Join;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      return isDefinedAt(plan)
          ? Scan.withChild((LogicalPlan) plan, firstMatches((Join) ((MergeRows) plan).child())) : otherwise.apply(plan);
    }
  }

  private static LogicalPlan firstMatches(Join join) {
    Alias row = new Alias(
        new MonotonicallyIncreasingID(), ROW, NamedExpression$.MODULE$.newExprId(), none(), Option.empty(), none());
    List columns = new ArrayList(CollectionConverters.asJava(join.left().output()));
    columns.add(row);
    // All matches of a row must come to one task, as for Spark's own count of them.
    Option hint = Option.apply(new HintInfo(Option.apply(NO_BROADCAST_AND_REPLICATION$.MODULE$)));
    Join numbered = new Join(
        new Project(CollectionTools.seq(columns), join.left()), join.right(), join.joinType(), join.condition(),
        new JoinHint(hint, join.hint().rightHint()));
    List number = Collections.singletonList(row.toAttribute().withNullability(true));
    Expression isFirst = new ScalaUDF(
        new IsFirst(), BooleanType$.MODULE$, CollectionTools.seq(number), none(), Option.empty(),
        Option.apply("is_first_match"), false, false);
    return new Filter(isFirst, numbered);
  }

  private static Seq none() {
    return CollectionTools.seq(Arrays.asList(new Object[0]));
  }

  /** Whether a row's number is new to the task; rows of the source that match none have no number. */
  static final class IsFirst extends AbstractFunction1 implements Serializable {
    private transient PositionSet seen;

    public Object apply(Object row) {
      if (row == null) {
        return Boolean.TRUE;
      }
      if (seen == null) {
        seen = new PositionSet();
      }
      return Boolean.valueOf(seen.addNew(((Long) row).longValue()));
    }
  }
}
