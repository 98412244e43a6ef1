package hms_iceberg.bridge.plan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.rowlevel.CopyOnWrite;
import hms_iceberg.bridge.rowlevel.MergeOnRead;
import hms_iceberg.bridge.scan.ScanFiles;
import hms_iceberg.bridge.scan.ScanQuestion;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.runtime.AbstractFunction1;

/**
 * What is done with the Iceberg tables of an optimized plan when Spark has brought the filters next to them, and before
 * it makes scans of them: aggregates that metadata knows are answered, statements that change rows learn what they read.
 */
public final class PrepareScans extends Rule {
  private final SparkSession session;

  public PrepareScans(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return replace((LogicalPlan) plan);
  }

  private LogicalPlan replace(LogicalPlan plan) {
    if (plan instanceof ReplaceData && ((ReplaceData) plan).operation() instanceof CopyOnWrite) {
      ((CopyOnWrite) ((ReplaceData) plan).operation()).prepare((ReplaceData) plan);
    }
    if (plan instanceof WriteDelta && ((WriteDelta) plan).operation() instanceof MergeOnRead) {
      WriteDelta alone = SparkVersions.withoutGroupFilter((WriteDelta) plan);
      LogicalPlan write = MatchingKeys.only(alone, session.sessionState().conf());
      return (LogicalPlan) write.mapChildren(new Replace());
    }
    if ("AddCheckConstraint".equals(plan.getClass().getSimpleName())) { // not of Spark 4.0
      refuseConstraint(plan);
    }
    if (plan instanceof DeleteFromTable) {
      return plan; // of whole files: Spark hands its condition to the table
    }
    LogicalPlan answered = MetadataAnswer.isWhole(plan) ? answered((Aggregate) plan) : null;
    if (answered != null) {
      return answered;
    }
    Scan scan = Scan.of(plan);
    if (scan == null) {
      return (LogicalPlan) plan.mapChildren(new Replace());
    }
    return VariantParts.of(scan, plan, (org.apache.spark.sql.classic.SparkSession) session);
  }

  private static void refuseConstraint(LogicalPlan plan) {
    Scan scan = Scan.of(plan);
    if (scan != null) {
      throw Failures.of("UnsupportedError: cannot add a check constraint to the table " + scan.table().name()
          + ": Iceberg tables have no constraints. Nothing was changed.", null);
    }
    for (scala.collection.Iterator it = plan.children().iterator(); it.hasNext();) {
      refuseConstraint((LogicalPlan) it.next());
    }
  }

  /** What metadata knows, else the aggregates of what is read; null if the query asks for something else. */
  private LogicalPlan answered(Aggregate plan) {
    List projections = new ArrayList();
    LogicalPlan source = plan.child();
    Scan scan = Scan.of(source);
    while (scan == null && source instanceof Project) {
      projections.add(source);
      source = ((Project) source).child();
      scan = Scan.of(source);
    }
    if (scan == null) {
      return null;
    }
    if (scan.condition() != null && SubqueryExpression.hasSubquery(scan.condition())) {
      return null; // what is told of the filter leaves subqueries out, and metadata would count all rows
    }
    Map names = scan.names();
    for (int i = projections.size() - 1; i >= 0; i--) {
      names = Scan.names((Project) projections.get(i), names);
    }
    ArrayNode asked = MetadataAnswer.asked(plan, names);
    if (asked == null) {
      return null;
    }
    ScanFiles files = files(scan, asked);
    return files.aggregates() == null ? null : MetadataAnswer.constant(plan, names, files.aggregates());
  }

  final class Replace extends AbstractFunction1 {
    public Object apply(Object child) {
      return replace((LogicalPlan) child);
    }
  }

  private ScanFiles files(Scan scan, ArrayNode aggregates) {
    UnsupportedTypes.refuse(scan.table().name(), scan.table().idSchema(), scan.columns());
    return scan.marksDeleted()
        ? ScanQuestion.ask(scan.table(), scan.question())
        : ScanQuestion.ask(scan.table(), scan.question(), aggregates);
  }
}
