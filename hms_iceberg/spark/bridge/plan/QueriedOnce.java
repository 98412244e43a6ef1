package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.rowlevel.CopyOnWrite;
import hms_iceberg.bridge.rowlevel.SameTwice;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubExprUtils$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryRelation$;
import org.apache.spark.storage.StorageLevel$;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * A copy-on-write statement runs the source of a MERGE, and the queries in its condition, more than once: to know which
 * files are replaced, and for their rows. Those that may have other rows then, such as a LIMIT or a table of a database,
 * are kept when they run first, or a row would be changed by one answer and its file chosen by another.
 */
public final class QueriedOnce extends Rule {
  private final SparkSession session;

  public QueriedOnce(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    boolean copies = plan instanceof ReplaceData && ((ReplaceData) plan).operation() instanceof CopyOnWrite;
    return copies ? kept((ReplaceData) plan) : plan;
  }

  private TreeNode kept(ReplaceData plan) {
    List queries = new ArrayList();
    collect(plan.condition(), queries);
    if (plan.groupFilterCondition().isDefined()) {
      collect((Expression) plan.groupFilterCondition().get(), queries);
    }
    if (queries.isEmpty()) {
      return plan;
    }
    Kept kept = new Kept(queries, (CopyOnWrite) plan.operation(), session);
    return (TreeNode) plan.transformWithSubqueries(kept);
  }

  private static void collect(Expression condition, List queries) {
    if (condition instanceof SubqueryExpression) {
      collect((LogicalPlan) ((SubqueryExpression) condition).plan(), queries);
    }
    for (Iterator it = CollectionConverters.asJava((Seq) condition.children()).iterator(); it.hasNext();) {
      collect((Expression) it.next(), queries);
    }
  }

  /** Of a query that depends on the row for which it is asked, what does not. */
  private static void collect(LogicalPlan query, List queries) {
    if (SameTwice.is(query)) {
      return;
    }
    if (!SubExprUtils$.MODULE$.hasOuterReferences(query) && !namesOthers(query)) {
      queries.add(query);
      return;
    }
    for (Iterator it = CollectionConverters.asJava((Seq) query.children()).iterator(); it.hasNext();) {
      collect((LogicalPlan) it.next(), queries);
    }
  }

  /** Whether it cannot run alone, since it names a query of a WITH clause. */
  private static boolean namesOthers(LogicalPlan query) {
    for (Iterator it = CollectionConverters.asJava((Seq) query.collectLeaves()).iterator(); it.hasNext();) {
      if (it.next() instanceof CTERelationRef) {
        return true;
      }
    }
    return false;
  }

  /** Puts what is kept of a query in the place of the query. */
  static final class Kept extends AbstractPartialFunction {
    private final List queries;
    private final InMemoryRelation[] kept;
    private final CopyOnWrite operation;
    private final SparkSession session;

    Kept(List queries, CopyOnWrite operation, SparkSession session) {
      this.queries = queries;
      this.kept = new InMemoryRelation[queries.size()];
      this.operation = operation;
      this.session = session;
    }

    public boolean isDefinedAt(Object plan) {
      return number((LogicalPlan) plan) >= 0;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      int number = number((LogicalPlan) plan);
      return number < 0 ? otherwise.apply(plan) : relation(number).withOutput(((LogicalPlan) plan).output());
    }

    private int number(LogicalPlan plan) {
      for (int i = 0; i < queries.size(); i++) {
        if (plan.getClass() == queries.get(i).getClass() && plan.sameResult((LogicalPlan) queries.get(i))) {
          return i;
        }
      }
      return -1;
    }

    /** Spark fills it when it is read first. */
    private InMemoryRelation relation(int number) {
      if (kept[number] == null) {
        LogicalPlan query = (LogicalPlan) queries.get(number);
        query.setAnalyzed();
        QueryExecution execution = SparkVersions.execution(session, query);
        kept[number] =
            InMemoryRelation$.MODULE$.apply(StorageLevel$.MODULE$.MEMORY_AND_DISK(), execution, Option.empty());
        operation.keep(kept[number].cacheBuilder());
      }
      return kept[number];
    }
  }
}
