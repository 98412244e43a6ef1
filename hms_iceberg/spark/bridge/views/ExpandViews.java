package hms_iceberg.bridge.views;

import hms_iceberg.bridge.tables.IcebergView;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UpCast;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructField;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts the query of an Iceberg view in the place of the view. Its names are those of the view's own default catalog and
 * namespace, whatever the session's are, and its columns are the view's by their position, as Iceberg's Java has it.
 */
public final class ExpandViews extends Rule {
  private final SparkSession session;

  public ExpandViews(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperators(new Expand());
  }

  final class Expand extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      return plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof IcebergView;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      return isDefinedAt(plan) ? expanded((DataSourceV2Relation) plan) : otherwise.apply(plan);
    }
  }

  private LogicalPlan expanded(DataSourceV2Relation relation) {
    IcebergView view = (IcebergView) relation.table();
    int limit = AnalysisContext.get().maxNestedViewDepth(); // not known before the first view
    if (limit >= 0 && AnalysisContext.get().nestedViewDepth() > limit) {
      throw Failures.of("InvalidInputError: the view " + view.name() + " is nested too deep in other views, or in"
          + " itself. Views may be nested spark.sql.view.maxNestedViewDepth levels deep.", null);
    }
    CatalogTable context = SparkVersions.viewContext(view.name(), view.schema(), view.defaults());
    LogicalPlan query = (LogicalPlan) AnalysisContext.withAnalysisContext(context, new Query(session, view.sql()));
    return new Project(CollectionTools.seq(columns(relation, view, query)), query);
  }

  /** The view's columns, under the ids that the rest of the plan knows them by. */
  private static List columns(DataSourceV2Relation relation, IcebergView view, LogicalPlan query) {
    List asked = CollectionConverters.asJava(relation.output());
    List found = CollectionConverters.asJava(query.output());
    if (asked.size() < found.size() && view.queryColumns().length == asked.size()) { // a foreign view may not tell them
      found = named(view.queryColumns(), found);
    }
    if (asked.size() != found.size()) {
      throw Failures.of("CorruptMetadataError: the view " + view.name() + " has " + asked.size() + " columns, and its"
          + " query " + found.size() + ". Replace the view.", null);
    }
    StructField[] fields = view.schema().fields();
    List columns = new ArrayList();
    for (int i = 0; i < fields.length; i++) {
      Expression column = new UpCast((Expression) found.get(i), fields[i].dataType(), Nil$.MODULE$);
      columns.add(new Alias(
          column, fields[i].name(), ((Attribute) asked.get(i)).exprId(), Nil$.MODULE$,
          Option.apply(fields[i].metadata()), Nil$.MODULE$));
    }
    return columns;
  }

  /** Of SELECT *, from a table that has got columns since: those that were there. All, if their names do not tell. */
  private static List named(String[] names, List found) {
    Map byName = new HashMap();
    for (int i = 0; i < found.size(); i++) {
      byName.put(((Attribute) found.get(i)).name(), found.get(i));
    }
    List named = new ArrayList();
    for (int i = 0; i < names.length; i++) {
      named.add(byName.get(names[i]));
    }
    return named.contains(null) || byName.size() < found.size() ? found : named;
  }

  /** The analyzed query; what it names is found or refused here, while names are the view's. */
  static final class Query extends AbstractFunction0 {
    private final SparkSession session;
    private final String sql;

    Query(SparkSession session, String sql) {
      this.session = session;
      this.sql = sql;
    }

    public Object apply() {
      Analyzer analyzer = session.sessionState().analyzer();
      LogicalPlan parsed;
      try {
        parsed = session.sessionState().sqlParser().parseQuery(sql);
      } catch (Exception e) {
        throw Failures.unchecked(e);
      }
      LogicalPlan query = analyzer.org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext(parsed);
      analyzer.checkAnalysis(query);
      return query;
    }
  }
}
