package hms_iceberg.bridge.views;

import hms_iceberg.bridge.wire.Failures;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What the query of a new view may not refer to. */
final class ViewReferences {
  private ViewReferences() {}

  /** A view outlives the session, and temporary views and functions do not. */
  static void refuseTemporary(SparkSession session, String view, LogicalPlan query) {
    SessionCatalog known = session.sessionState().catalog();
    Set views = new LinkedHashSet();
    Set functions = new LinkedHashSet();
    List nodes = new ArrayList();
    addAll(query, nodes);
    for (Iterator it = nodes.iterator(); it.hasNext();) {
      Object node = it.next();
      if (node instanceof UnresolvedRelation && known.isTempView(((UnresolvedRelation) node).multipartIdentifier())) {
        views.add(dotted(((UnresolvedRelation) node).multipartIdentifier()));
      } else if (node instanceof View && ((View) node).isTempView()) {
        views.add(((View) node).desc().identifier().unquotedString());
      } else if (node instanceof UnresolvedFunction && isTemporary(known, ((UnresolvedFunction) node).nameParts())) {
        functions.add(dotted(((UnresolvedFunction) node).nameParts()));
      }
    }
    if (!views.isEmpty() || !functions.isEmpty()) {
      throw Failures.of("InvalidInputError: Cannot create view " + view + " that references temporary "
          + (views.isEmpty() ? "function: " + functions : "view: " + views) + ". Nothing was changed. Put its query in its"
          + " place.", null);
    }
  }

  private static boolean isTemporary(SessionCatalog known, Seq name) {
    return name.length() == 1 && known.isTemporaryFunction(new FunctionIdentifier((String) name.apply(0)));
  }

  private static String dotted(Seq parts) {
    return parts.mkString(".");
  }

  private static void addAll(LogicalPlan plan, List nodes) {
    nodes.add(plan);
    for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
      addAll((LogicalPlan) it.next(), nodes);
    }
    for (Iterator it = CollectionConverters.asJava(plan.expressions()).iterator(); it.hasNext();) {
      addAll((Expression) it.next(), nodes);
    }
  }

  private static void addAll(Expression expression, List nodes) {
    nodes.add(expression);
    if (expression instanceof PlanExpression && ((PlanExpression) expression).plan() instanceof LogicalPlan) {
      addAll((LogicalPlan) ((PlanExpression) expression).plan(), nodes);
    }
    for (Iterator it = CollectionConverters.asJava(expression.children()).iterator(); it.hasNext();) {
      addAll((Expression) it.next(), nodes);
    }
  }

  /** A view that replaces another must not be made of it. */
  static void refuseCycle(String view, LogicalPlan analyzed) {
    follow(analyzed, view, view);
  }

  private static void follow(LogicalPlan plan, String view, String path) {
    String name = viewName(plan);
    String next = name == null ? path : path + " -> " + name;
    if (name != null && name.equalsIgnoreCase(view)) {
      throw Failures.of("InvalidInputError: Recursive cycle in view detected: " + view + " (cycle: " + next + "). Nothing"
          + " was changed.", null);
    }
    for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
      follow((LogicalPlan) it.next(), view, next);
    }
    for (Iterator it = CollectionConverters.asJava(plan.expressions()).iterator(); it.hasNext();) {
      List nodes = new ArrayList();
      addQueries((Expression) it.next(), nodes);
      for (int i = 0; i < nodes.size(); i++) {
        follow((LogicalPlan) nodes.get(i), view, next);
      }
    }
  }

  private static void addQueries(Expression expression, List queries) {
    if (expression instanceof PlanExpression && ((PlanExpression) expression).plan() instanceof LogicalPlan) {
      queries.add(((PlanExpression) expression).plan());
    }
    for (Iterator it = CollectionConverters.asJava(expression.children()).iterator(); it.hasNext();) {
      addQueries((Expression) it.next(), queries);
    }
  }

  /** The name under which a view's query stands in an analyzed plan; null of anything else. */
  private static String viewName(LogicalPlan plan) {
    if (plan instanceof View) {
      return ((View) plan).desc().identifier().unquotedString();
    }
    if (plan instanceof SubqueryAlias && ((SubqueryAlias) plan).child() instanceof Project) {
      AliasIdentifier name = ((SubqueryAlias) plan).identifier();
      return name.qualifier().isEmpty() ? null : dotted(name.qualifier()) + "." + name.name();
    }
    return null;
  }
}
