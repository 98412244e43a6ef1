package hms_iceberg.bridge;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.Iterator;

/**
 * DELETE, UPDATE and MERGE whose conditions name metadata columns are refused: Spark 3.5 takes these for columns to
 * write, and a condition on `_deleted` would bring deleted rows back.
 */
final class MetadataOfRows extends Rule {
  private static final String MARK = "__metadata_col";

  public TreeNode apply(TreeNode plan) {
    if ((plan instanceof DeleteFromTable || plan instanceof UpdateTable || plan instanceof MergeIntoTable)
        && ((LogicalPlan) plan).resolved()) {
      LogicalPlan table = (LogicalPlan) ((LogicalPlan) plan).children().head();
      for (Iterator it = ((LogicalPlan) plan).references().iterator(); it.hasNext();) {
        Attribute used = (Attribute) it.next();
        if (used.metadata().contains(MARK)
            && (table.outputSet().contains(used) || has(table.metadataOutput().iterator(), used))) {
          throw Bridge.failure("UnsupportedError: Spark 3.5 cannot change rows by metadata columns (_file, _pos, _deleted,"
              + " _spec_id, _partition). Choose the rows by the table's own columns, or use Spark 4.", null);
        }
      }
    }
    return plan;
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
