package hms_iceberg.bridge.sql;

import hms_iceberg.bridge.catalog.CarriedStatement;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.command.AlterTableSetPropertiesCommand;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * Iceberg's ALTER TABLE statements as plans of Spark. Each is carried by ALTER TABLE ... SET TBLPROPERTIES of one
 * property that no table ever gets: so Spark finds the table, in whatever catalog and namespace are current, and
 * hands the statement to its catalog.
 */
public final class Statements {
  private Statements() {}

  public static LogicalPlan plan(List table, String command, String statement) {
    Map carrier = (Map) Map$.MODULE$.empty().updated(CarriedStatement.PROPERTY, statement);
    return new SetTableProperties(Generation.table(CollectionTools.seq(table), command), carrier);
  }

  /** No other table may get the carrying property. */
  public static final class OnlyForIceberg extends Rule {
    public TreeNode apply(TreeNode plan) {
      if (plan instanceof SetTableProperties) {
        SetTableProperties statement = (SetTableProperties) plan;
        boolean isOthers = statement.table() instanceof ResolvedTable
            && !(((ResolvedTable) statement.table()).catalog() instanceof IcebergCatalog);
        if (isOthers && statement.properties().contains(CarriedStatement.PROPERTY)) {
          throw refusal(((ResolvedTable) statement.table()).name());
        }
      }
      if (plan instanceof AlterTableSetPropertiesCommand) {
        AlterTableSetPropertiesCommand statement = (AlterTableSetPropertiesCommand) plan;
        if (statement.properties().contains(CarriedStatement.PROPERTY)) {
          throw refusal(statement.tableName().unquotedString());
        }
      }
      return (LogicalPlan) plan;
    }

    private static RuntimeException refusal(String table) {
      return Failures.of("NotAnIcebergTableError: Cannot change partition fields, sort order, identifier fields,"
          + " branches or tags of " + table + ": it is not an Iceberg table. Nothing was changed.", null);
    }
  }
}
