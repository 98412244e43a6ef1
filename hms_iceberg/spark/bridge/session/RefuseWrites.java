package hms_iceberg.bridge.session;

import hms_iceberg.bridge.catalog.SessionCatalog;
import hms_iceberg.bridge.metastore.MetastoreRows;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Shapes;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.Map;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.CreateTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;

/**
 * DataFrameWriter.saveAsTable works on names and asks no catalog of the second generation: it would replace the
 * row of an Iceberg table, or append to its folder as Hive does. Here it appends to the table, as with the format
 * "iceberg", and refuses to replace it.
 */
final class RefuseWrites extends Rule {
  private static final boolean SAVE_DROPS =
      Shapes.absent("org.apache.spark.sql.execution.command.SaveAsV1TableCommand", "") != null;

  private final SparkSession session;

  RefuseWrites(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    if (plan instanceof CreateTable && ((CreateTable) plan).query().isDefined()) {
      CreateTable saved = (CreateTable) plan;
      return written(saved, saved.tableDesc(), saved.mode(), (LogicalPlan) saved.query().get());
    }
    if ("SaveAsV1TableCommand".equals(plan.getClass().getSimpleName())) {
      return written(
          (LogicalPlan) plan, (CatalogTable) get(plan, "tableDesc"), (SaveMode) get(plan, "mode"),
          (LogicalPlan) get(plan, "query"));
    }
    if (SAVE_DROPS && plan instanceof SubqueryAlias && ((SubqueryAlias) plan).child() instanceof DataSourceV2Relation) {
      refuseDrop(((DataSourceV2Relation) ((SubqueryAlias) plan).child()).table());
    }
    return (LogicalPlan) plan;
  }

  /**
   * Until Spark 4.0, saveAsTable drops the table that it replaces without a plan that a rule could see. It reads the
   * table just before, and does that for no other end.
   */
  private static void refuseDrop(Table table) {
    if (!(table instanceof IcebergTable)) {
      return;
    }
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if ("saveAsTable".equals(calls[i].getMethodName()) && calls[i].getClassName().endsWith(".DataFrameWriter")) {
        throw MetastoreRows.notReplaceable(table.name());
      }
    }
  }

  private static Object get(TreeNode plan, String part) {
    try {
      return plan.getClass().getMethod(part, new Class[0]).invoke(plan, new Object[0]);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + plan.getClass(), e);
    }
  }

  private LogicalPlan written(LogicalPlan plan, CatalogTable table, SaveMode mode, LogicalPlan query) {
    if (mode != SaveMode.Append && mode != SaveMode.Overwrite || !isIceberg(table.identifier())) {
      return plan;
    }
    if (mode == SaveMode.Overwrite || !table.partitionColumnNames().isEmpty() || table.bucketSpec().isDefined()) {
      throw MetastoreRows.notReplaceable(table.identifier().unquotedString());
    }
    SessionCatalog catalog = (SessionCatalog) session.sessionState().catalogManager().v2SessionCatalog();
    Identifier ident = new TableName(new String[] {database(table.identifier())}, table.identifier().table());
    try {
      return SparkVersions.appendByName(
          DataSourceV2Relation.create(catalog.loadTable(ident), Option.apply(catalog), Option.apply(ident)), query,
          table.storage().properties());
    } catch (NoSuchTableException e) {
      throw Failures.unchecked(e);
    }
  }

  private boolean isIceberg(TableIdentifier name) {
    return MetastoreRows.isIceberg(row(name));
  }

  private Map row(TableIdentifier name) {
    return MetastoreRows.parameters(database(name), name.table());
  }

  private String database(TableIdentifier name) {
    return name.database().isDefined()
        ? (String) name.database().get() : session.sessionState().catalog().getCurrentDatabase();
  }
}
