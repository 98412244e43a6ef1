package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.execution.command.AlterTableSetPropertiesCommand;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * Iceberg's ALTER TABLE statements as plans of Spark. Each is carried by ALTER TABLE ... SET TBLPROPERTIES of one
 * property that no table ever gets: so Spark finds the table, in whatever catalog and namespace are current, and
 * hands the statement to its catalog.
 */
final class Statements {
  private static final String CARRIER = "hms_iceberg.statement";

  private Statements() {}

  static LogicalPlan plan(List table, String command, String statement) {
    Map carrier = (Map) Map$.MODULE$.empty().updated(CARRIER, statement);
    return new SetTableProperties(Generation.table(CollectionTools.seq(table), command), carrier);
  }

  static boolean isStatement(TableChange[] changes) {
    return changes.length == 1 && changes[0] instanceof TableChange.SetProperty
        && CARRIER.equals(((TableChange.SetProperty) changes[0]).property());
  }

  static void run(TableSource source, TableChange[] changes) {
    ObjectNode question = source.change("run-statement");
    question.put("statement", ((TableChange.SetProperty) changes[0]).value());
    question.put("case_sensitive", SQLConf.get().caseSensitiveAnalysis());
    Bridge.ask(question);
  }

  /** No other table may get the carrying property. */
  static final class OnlyForIceberg extends Rule {
    public TreeNode apply(TreeNode plan) {
      if (plan instanceof SetTableProperties) {
        SetTableProperties statement = (SetTableProperties) plan;
        boolean isOthers = statement.table() instanceof ResolvedTable
            && !(((ResolvedTable) statement.table()).catalog() instanceof IcebergCatalog);
        if (isOthers && statement.properties().contains(CARRIER)) {
          throw refusal(((ResolvedTable) statement.table()).name());
        }
      }
      if (plan instanceof AlterTableSetPropertiesCommand) {
        AlterTableSetPropertiesCommand statement = (AlterTableSetPropertiesCommand) plan;
        if (statement.properties().contains(CARRIER)) {
          throw refusal(statement.tableName().unquotedString());
        }
      }
      return (LogicalPlan) plan;
    }

    private static RuntimeException refusal(String table) {
      return Bridge.failure("NotAnIcebergTableError: Cannot change partition fields, sort order, identifier fields,"
          + " branches or tags of " + table + ": it is not an Iceberg table. Nothing was changed.", null);
    }
  }
}
