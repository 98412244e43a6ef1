package hms_iceberg.bridge.session;

import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.OpenTransactions;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * In a transaction on several tables, no statement may change what is not in it, as it could not be taken back: tables that
 * are not Iceberg's. Streams have a session, and commits, of their own.
 */
final class RefuseInTransaction extends AbstractFunction1 {
  private static final Pattern CHANGES = Pattern.compile(
      "(Alter|Analyze|Create|Drop|Insert|Load|Repair|Truncate)\\w*(Table|View|Data|DataSource|Database|Namespace|Partition|Columns?)"
          + "\\w*");
  private static final Pattern OF_NAMES = Pattern.compile(
      "(Create|Replace|Drop|Rename)(Table|View|Namespace)(AsSelect)?|(Set|Unset|CommentOn)Namespace(Properties|Location)?");
  private static final Pattern STREAMS = Pattern.compile("WriteToStream(Statement)?");

  private final SparkSession session;
  private final OpenTransactions transactions;

  RefuseInTransaction(SparkSession session, OpenTransactions transactions) {
    this.session = session;
    this.transactions = transactions;
  }

  public Object apply(Object plan) {
    if (transactions.of(session) != null && isRefused((LogicalPlan) plan)) {
      throw Failures.of("UnsupportedError: Cannot carry out " + ((TreeNode) plan).nodeName() + " in transaction "
          + transactions.of(session).asText() + " of this session: it changes rows and definitions of Iceberg tables only, and"
          + " starts no streams. Nothing was changed. End it first (call system.commit_transaction(), or call"
          + " system.rollback_transaction()), or use another session.", null);
    }
    return BoxedUnit.UNIT;
  }

  private static boolean isRefused(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    if (plan instanceof InsertIntoHadoopFsRelationCommand) { // files in a folder are nobody's table
      return ((InsertIntoHadoopFsRelationCommand) plan).catalogTable().isDefined();
    }
    if (plan instanceof CreateViewCommand) {
      return !"LocalTempView".equals(String.valueOf(((CreateViewCommand) plan).viewType()))
          && !"GlobalTempView".equals(String.valueOf(((CreateViewCommand) plan).viewType()));
    }
    if (plan instanceof V2WriteCommand) {
      return ((V2WriteCommand) plan).table() instanceof DataSourceV2Relation
          && !isIceberg(((DataSourceV2Relation) ((V2WriteCommand) plan).table()).table());
    }
    boolean isCommand = plan.getClass().getName().startsWith("org.apache.spark.sql.execution.")
        || plan.getClass().getName().startsWith("org.apache.spark.sql.hive.execution.");
    return STREAMS.matcher(name).matches() || OF_NAMES.matcher(name).matches()
        || isCommand && CHANGES.matcher(name).matches() && !name.contains("TempView");
  }

  private static boolean isIceberg(Table table) {
    return table instanceof RowLevelOperationTable
        ? isIceberg((Table) ((RowLevelOperationTable) table).table()) : table instanceof DescribedTable;
  }
}
