package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.Iterator;

/**
 * DELETE, UPDATE and MERGE whose conditions name metadata columns: Spark 3.5 takes these for columns to write. A DELETE
 * by merge-on-read writes no columns; the others are refused, and so is `_deleted`, which brings deleted rows back.
 */
final class MetadataOfRows extends Rule {
  private static final String MARK = "__metadata_col";

  public TreeNode apply(TreeNode plan) {
    if ((plan instanceof DeleteFromTable || plan instanceof UpdateTable || plan instanceof MergeIntoTable)
        && ((LogicalPlan) plan).resolved()) {
      LogicalPlan table = (LogicalPlan) ((LogicalPlan) plan).children().head();
      boolean marks = plan instanceof DeleteFromTable && marks(table);
      for (Iterator it = ((LogicalPlan) plan).references().iterator(); it.hasNext();) {
        Attribute used = (Attribute) it.next();
        if (used.metadata().contains(MARK) && !(marks && !MetadataColumns.DELETED.equals(used.name()))
            && (table.outputSet().contains(used) || has(table.metadataOutput().iterator(), used))) {
          throw Bridge.failure("UnsupportedError: Spark 3.5 cannot change rows by metadata columns (_file, _pos, _deleted,"
              + " _spec_id, _partition), except that a table whose write.delete.mode is merge-on-read takes DELETE by all"
              + " but _deleted. Choose the rows by the table's own columns, or use Spark 4.", null);
        }
      }
    }
    return plan;
  }

  /** Whether a DELETE of rows of this table only marks them. */
  private static boolean marks(LogicalPlan plan) {
    LogicalPlan relation = EliminateSubqueryAliases$.MODULE$.apply(plan);
    Table table = relation instanceof DataSourceV2Relation ? ((DataSourceV2Relation) relation).table() : null;
    if (!(table instanceof IcebergTable)) {
      return false;
    }
    JsonNode change = ((IcebergTable) table).rowChange("delete");
    return !change.has("error") && !RowOperation.copies((IcebergTable) table, change);
  }

  private static boolean has(Iterator attributes, Attribute used) {
    while (attributes.hasNext()) {
      if (((Attribute) attributes.next()).exprId().equals(used.exprId())) {
        return true;
      }
    }
    return false;
  }
}
