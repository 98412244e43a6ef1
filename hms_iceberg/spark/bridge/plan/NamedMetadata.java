package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * DELETE, UPDATE and MERGE with conditions on metadata columns: Spark knows only those in the rewritten statement that
 * its operation requires. Which these are is seen before names are resolved, and the table tells its operation: a
 * statement that names none does not pay for them. The table is resolved here, as Spark 4.1 rewrites a statement in the
 * same pass that resolves it, and hands no options of the table to the operation. A MERGE whose words Spark 4.0 would not
 * heed is refused here too.
 */
public final class NamedMetadata extends Rule {
  private static final List NAMES = Arrays.asList(new Object[] {
      MetadataColumns.FILE, MetadataColumns.POSITION, MetadataColumns.SPEC_ID, MetadataColumns.PARTITION});

  private final SparkSession session;

  public NamedMetadata(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperators(new Note(session));
  }

  static final class Note extends AbstractPartialFunction {
    private final SparkSession session;

    Note(SparkSession session) {
      this.session = session;
    }

    public boolean isDefinedAt(Object plan) {
      return plan instanceof DeleteFromTable || plan instanceof UpdateTable || plan instanceof MergeIntoTable;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      if (plan instanceof MergeIntoTable && SparkVersions.ignoresSchemaEvolution((MergeIntoTable) plan)) {
        requireNoEvolution((LogicalPlan) ((LogicalPlan) plan).children().head());
      }
      TreeSet names = new TreeSet();
      collect(((QueryPlan) plan).expressions().iterator(), names);
      if (names.isEmpty()) {
        return plan;
      }
      List children = new ArrayList(CollectionConverters.asJava(((LogicalPlan) plan).children()));
      Rule relations = (Rule) session.sessionState().analyzer().ResolveRelations();
      children.set(0, ((LogicalPlan) children.get(0)).resolveOperators(new Tell(relations, String.join(",", names))));
      return ((LogicalPlan) plan).withNewChildren(CollectionTools.seq(children));
    }

    private void requireNoEvolution(LogicalPlan target) {
      Rule relations = (Rule) session.sessionState().analyzer().ResolveRelations();
      LogicalPlan found = (LogicalPlan) relations.apply((LogicalPlan) EliminateSubqueryAliases$.MODULE$.apply(target));
      found = (LogicalPlan) EliminateSubqueryAliases$.MODULE$.apply(found);
      if (found instanceof DataSourceV2Relation && ((DataSourceV2Relation) found).table() instanceof IcebergTable) {
        throw Failures.of("UnsupportedError: Spark 4.0 takes the words WITH SCHEMA EVOLUTION of a MERGE, and leaves out"
            + " the columns that table " + ((DataSourceV2Relation) found).table().name() + " lacks. Add them by ALTER"
            + " TABLE first and MERGE without the words, or use Spark 4.1 or newer.", null);
      }
    }

    private static void collect(scala.collection.Iterator expressions, TreeSet names) {
      while (expressions.hasNext()) {
        TreeNode expression = (TreeNode) expressions.next();
        if (expression instanceof UnresolvedAttribute) {
          List parts = CollectionConverters.asJava(((UnresolvedAttribute) expression).nameParts());
          for (int i = 0; i < parts.size(); i++) {
            String part = ((String) parts.get(i)).toLowerCase(Locale.ROOT);
            if (NAMES.contains(part)) {
              names.add(part);
            }
          }
        }
        if (expression instanceof SubqueryExpression) {
          collectPlan((QueryPlan) ((SubqueryExpression) expression).plan(), names);
        }
        collect(expression.children().iterator(), names);
      }
    }

    private static void collectPlan(QueryPlan plan, TreeSet names) {
      collect(plan.expressions().iterator(), names);
      for (scala.collection.Iterator it = plan.children().iterator(); it.hasNext();) {
        collectPlan((QueryPlan) it.next(), names);
      }
    }
  }

  /** Resolves a table, and has it hand the names to its operations. */
  static final class Tell extends AbstractPartialFunction {
    private final Rule relations;
    private final String names;

    Tell(Rule relations, String names) {
      this.relations = relations;
      this.names = names;
    }

    public boolean isDefinedAt(Object plan) {
      return plan instanceof UnresolvedRelation;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      return ((LogicalPlan) relations.apply((LogicalPlan) plan)).resolveOperators(new Named(names));
    }
  }

  static final class Named extends AbstractPartialFunction {
    private final String names;

    Named(String names) {
      this.names = names;
    }

    public boolean isDefinedAt(Object plan) {
      return plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof IcebergTable;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      DataSourceV2Relation relation = (DataSourceV2Relation) plan;
      Object[] parts = new Object[relation.productArity()]; // their number differs between versions of Spark
      parts[0] = new TableOfConditions((IcebergTable) relation.table(), names);
      for (int i = 1; i < parts.length; i++) {
        parts[i] = relation.productElement(i);
      }
      return relation.makeCopy(parts);
    }
  }
}
