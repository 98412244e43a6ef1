package hms_iceberg.bridge;

import java.util.Map;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.CreateTable;

/**
 * DataFrameWriter.saveAsTable works on names and asks no catalog of the second generation: it would replace the
 * row of an Iceberg table, or append to its folder as Hive does.
 */
final class RefuseWrites extends Rule {
  private final SparkSession session;

  RefuseWrites(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    if (plan instanceof CreateTable && ((CreateTable) plan).query().isDefined()) {
      refuseIfIceberg(((CreateTable) plan).tableDesc(), ((CreateTable) plan).mode());
    } else if ("SaveAsV1TableCommand".equals(plan.getClass().getSimpleName())) {
      try {
        refuseIfIceberg(
            (CatalogTable) plan.getClass().getMethod("tableDesc", new Class[0]).invoke(plan, new Object[0]),
            (SaveMode) plan.getClass().getMethod("mode", new Class[0]).invoke(plan, new Object[0]));
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("This version of Spark is not supported: " + plan.getClass(), e);
      }
    }
    return (LogicalPlan) plan;
  }

  private void refuseIfIceberg(CatalogTable table, SaveMode mode) {
    if (mode != SaveMode.Append && mode != SaveMode.Overwrite) {
      return;
    }
    if (isIceberg(table.identifier())) {
      throw MetastoreRows.notWritable(table.identifier().unquotedString(), "saveAsTable");
    }
  }

  private boolean isIceberg(TableIdentifier name) {
    return MetastoreRows.isIceberg(row(name));
  }

  private Map row(TableIdentifier name) {
    String database = name.database().isDefined()
        ? (String) name.database().get() : session.sessionState().catalog().getCurrentDatabase();
    return MetastoreRows.parameters(database, name.table());
  }
}
