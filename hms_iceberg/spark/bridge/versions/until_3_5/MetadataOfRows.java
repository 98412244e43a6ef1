package hms_iceberg.bridge.session;

import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.plan.TableOfConditions;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.until_3_5.CollectionConverters;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * DELETE and UPDATE by metadata columns: Spark 3.5 takes these for columns to write, and would read deleted rows. The
 * statement gets a table without them, whose operation requires those that are named. MERGE is refused: Spark has given
 * its INSERT values for them by then.
 */
final class MetadataOfRows extends Rule {
  private static final String MARK = "__metadata_col";

  public TreeNode apply(TreeNode plan) {
    if (!(plan instanceof DeleteFromTable || plan instanceof UpdateTable || plan instanceof MergeIntoTable)
        || !((LogicalPlan) plan).resolved()) {
      return plan;
    }
    LogicalPlan statement = (LogicalPlan) plan;
    LogicalPlan target = (LogicalPlan) EliminateSubqueryAliases$.MODULE$.apply((LogicalPlan) statement.children().head());
    if (!(target instanceof DataSourceV2Relation)
        || !(((DataSourceV2Relation) target).table() instanceof IcebergTable)) {
      return plan;
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) target;
    List own = new ArrayList();
    Map metadata = new HashMap(); // names by ids
    for (Iterator it = CollectionConverters.asJava(relation.output()).iterator(); it.hasNext();) {
      Attribute column = (Attribute) it.next();
      if (column.metadata().contains(MARK)) {
        metadata.put(column.exprId(), column.name());
      } else {
        own.add(column);
      }
    }
    return metadata.isEmpty() ? plan : narrowed(statement, relation, own, metadata);
  }

  private static LogicalPlan narrowed(LogicalPlan statement, DataSourceV2Relation relation, List own, Map metadata) {
    TreeMap named = new TreeMap();
    LogicalPlan kept = statement;
    if (statement instanceof DeleteFromTable) {
      collect(((DeleteFromTable) statement).condition(), metadata, named);
    } else if (statement instanceof UpdateTable) {
      UpdateTable update = (UpdateTable) statement;
      List assignments = new ArrayList();
      for (Iterator it = CollectionConverters.asJava(update.assignments()).iterator(); it.hasNext();) {
        Assignment each = (Assignment) it.next();
        boolean isOwn = !(each.key() instanceof Attribute) || !metadata.containsKey(((Attribute) each.key()).exprId());
        if (isOwn) {
          assignments.add(each);
          collect(each.value(), metadata, named);
        } else if (!each.value().semanticEquals(each.key())) {
          throw refused();
        }
      }
      if (update.condition().isDefined()) {
        collect((Expression) update.condition().get(), metadata, named);
      }
      kept = new UpdateTable(update.table(), CollectionTools.seq(assignments), update.condition());
    }
    if (named.isEmpty() || named.containsKey(MetadataColumns.DELETED)) { // of a MERGE nothing is collected
      throw refused();
    }
    DataSourceV2Relation without = new DataSourceV2Relation(
        new TableOfConditions((IcebergTable) relation.table(), String.join(",", named.keySet())),
        CollectionTools.seq(own), relation.catalog(), relation.identifier(), relation.options());
    Map columns = new HashMap();
    for (Iterator it = CollectionConverters.asJava(without.metadataOutput()).iterator(); it.hasNext();) {
      Attribute column = (Attribute) it.next();
      if (named.containsKey(column.name())) {
        columns.put(named.get(column.name()), column);
      }
    }
    LogicalPlan renamed = (LogicalPlan) kept.transformAllExpressionsWithSubqueries(new Renamed(columns));
    return (LogicalPlan) renamed.withNewChildren(CollectionTools.seq(Collections.singletonList(without)));
  }

  /** The metadata columns that an expression uses: their ids by their names. */
  private static void collect(Expression expression, Map metadata, Map named) {
    for (scala.collection.Iterator it = expression.references().iterator(); it.hasNext();) {
      Attribute used = (Attribute) it.next();
      if (metadata.containsKey(used.exprId())) {
        named.put(metadata.get(used.exprId()), used.exprId());
      }
    }
  }

  private static RuntimeException refused() {
    return Failures.of("UnsupportedError: Spark 3.5 cannot MERGE by metadata columns (_file, _pos, _spec_id,"
        + " _partition), nor change rows by _deleted, nor assign to one of them. Choose the rows by the table's own"
        + " columns, or use Spark 4.", null);
  }

  /** The columns of the new table in the place of the old one's. */
  static final class Renamed extends AbstractPartialFunction {
    private final Map columns;

    Renamed(Map columns) {
      this.columns = columns;
    }

    public boolean isDefinedAt(Object expression) {
      Object column = expression instanceof OuterReference ? ((OuterReference) expression).e() : expression;
      return column instanceof Attribute && columns.containsKey(((Attribute) column).exprId());
    }

    public Object applyOrElse(Object expression, Function1 otherwise) {
      if (!isDefinedAt(expression)) {
        return otherwise.apply(expression);
      }
      if (expression instanceof OuterReference) {
        Attribute outer = (Attribute) ((OuterReference) expression).e();
        return new OuterReference((Attribute) columns.get(outer.exprId()));
      }
      return columns.get(((Attribute) expression).exprId());
    }
  }
}
