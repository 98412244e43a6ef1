package hms_iceberg.bridge.session;

import hms_iceberg.bridge.views.ShowIcebergViews;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ShowTables;
import org.apache.spark.sql.catalyst.plans.logical.ShowViews;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.DescribeQueryCommand;
import org.apache.spark.sql.execution.command.ShowTablesCommand;
import org.apache.spark.sql.execution.command.ShowViewsCommand;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * SHOW TABLES and SHOW VIEWS with Hive's one column, for clients that speak to a server as to Hive: they take the first
 * one for the table's name, where Spark has its namespace. A table that is not there is missed in Hive's words.
 */
final class HiveAnswers extends Rule {
  private static final String SETTING = "spark.hms_iceberg.answers";

  private final SparkSession session;

  HiveAnswers(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return "hive".equalsIgnoreCase(session.sessionState().conf().getConfString(SETTING, "spark"))
        ? asHive((LogicalPlan) plan) : plan;
  }

  private static LogicalPlan asHive(LogicalPlan plan) {
    boolean shows = plan instanceof ShowTables || plan instanceof ShowViews || plan instanceof ShowViewsCommand
        || plan instanceof ShowIcebergViews
        || plan instanceof ShowTablesCommand && !((ShowTablesCommand) plan).isExtended();
    if (plan instanceof DescribeQueryCommand) { // pandas takes what can be described for a table
      throw Failures.of(
          "UnsupportedError: Hive describes no queries. Set " + SETTING + "=spark to have Spark's answers.", null);
    }
    if (plan instanceof DescribeRelation && ((DescribeRelation) plan).relation() instanceof UnresolvedTableOrView) {
      throw notFound((UnresolvedTableOrView) ((DescribeRelation) plan).relation());
    }
    return shows && plan.resolved() ? names(plan) : plan;
  }

  /** What clients of Hive look for to learn that there is no such table. */
  private static RuntimeException notFound(UnresolvedTableOrView relation) {
    String name = CollectionConverters.asJava(relation.multipartIdentifier()).toString();
    return Failures.of("[TABLE_OR_VIEW_NOT_FOUND] SemanticException [Error 10001]: Table not found "
        + name.substring(1, name.length() - 1).replace(", ", "."), null);
  }

  private static LogicalPlan names(LogicalPlan shown) {
    List columns = CollectionConverters.asJava(shown.output());
    Attribute name = (Attribute) columns.get(1);
    Alias named = new Alias(
        name, "tab_name", NamedExpression$.MODULE$.newExprId(), CollectionTools.seq(Collections.emptyList()),
        Option.empty(), CollectionTools.seq(Collections.emptyList()));
    return new Project(CollectionTools.seq(Collections.singletonList(named)), shown);
  }
}
