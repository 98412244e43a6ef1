package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.rowlevel.RowOperation;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.SparkVersions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * A statement that changes rows sees its table in one version, wherever it names it. Once a statement is resolved, Spark
 * 4.1 and later look for newer versions of its tables, but not of the one that it changes.
 */
public final class OneVersion extends Rule {
  public TreeNode apply(TreeNode plan) {
    RowLevelOperation operation = null;
    if (plan instanceof ReplaceData) {
      operation = ((ReplaceData) plan).operation();
    } else if (plan instanceof WriteDelta) {
      operation = ((WriteDelta) plan).operation();
    }
    return operation instanceof RowOperation
        ? (TreeNode) ((LogicalPlan) plan).transformWithSubqueries(new Pin(((RowOperation) operation).table)) : plan;
  }

  /** Puts one version of a table in the place of others. */
  static final class Pin extends AbstractPartialFunction {
    private final DescribedTable table;

    Pin(DescribedTable table) {
      this.table = table;
    }

    public boolean isDefinedAt(Object plan) {
      Object read = plan instanceof DataSourceV2Relation ? ((DataSourceV2Relation) plan).table() : null;
      return read instanceof DescribedTable && table.isOtherVersionOf((DescribedTable) read);
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      return isDefinedAt(plan) ? SparkVersions.with((TreeNode) plan, 0, table) : otherwise.apply(plan);
    }
  }
}
