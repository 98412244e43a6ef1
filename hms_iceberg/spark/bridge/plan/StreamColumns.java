package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.conditions.SimpleFirst;
import hms_iceberg.bridge.stream.AppendedRows;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * A batch of a stream reads the columns that it uses, and leaves files out by its filter. Spark pushes neither down there,
 * and since 4.3 both as the stream begins, when its query is not optimized yet.
 */
public final class StreamColumns extends Rule {
  public TreeNode apply(TreeNode plan) {
    return replace((LogicalPlan) plan);
  }

  private LogicalPlan replace(LogicalPlan plan) {
    Project project = plan instanceof Project ? (Project) plan : null;
    LogicalPlan below = project == null ? plan : project.child();
    Filter filter = below instanceof Filter ? (Filter) below : null;
    LogicalPlan leaf = filter == null ? below : filter.child();
    int place = stream(leaf);
    if (place < 0) {
      return (LogicalPlan) plan.mapChildren(new Replace());
    }
    LogicalPlan narrowed = narrowed(leaf, place, project, filter);
    LogicalPlan made = filter == null ? narrowed : Scan.withChild(filter, narrowed);
    return project == null ? made : Scan.withChild(project, made);
  }

  /** Which part of a leaf of the plan is the stream; negative if it is another leaf. */
  private static int stream(LogicalPlan leaf) {
    if (leaf.children().isEmpty() && leaf.isStreaming()) {
      for (int i = 0; i < ((Product) leaf).productArity(); i++) {
        if (((Product) leaf).productElement(i) instanceof AppendedRows) {
          return i;
        }
      }
    }
    return -1;
  }

  private static LogicalPlan narrowed(LogicalPlan leaf, int place, Project project, Filter filter) {
    List output = used(leaf, project, filter);
    StructField[] columns = new StructField[output.size()];
    for (int i = 0; i < columns.length; i++) {
      Attribute column = (Attribute) output.get(i);
      columns[i] = new StructField(column.name(), column.dataType(), column.nullable(), column.metadata());
    }
    List tests = filter == null ? Collections.emptyList() : SimpleFirst.split(filter.condition());
    StructType read = new StructType(columns);
    AppendedRows rows = ((AppendedRows) ((Product) leaf).productElement(place)).of(read, tests);
    LogicalPlan made = leaf;
    for (int i = 0; i < ((Product) leaf).productArity(); i++) {
      Object part = ((Product) leaf).productElement(i);
      Object other = part instanceof AppendedRows ? (Object) rows
          : part instanceof org.apache.spark.sql.connector.read.Scan ? (Object) rows.scan()
          : part.equals(leaf.output()) ? (Object) CollectionTools.seq(output) : part;
      made = (LogicalPlan) SparkVersions.with(made, i, other);
    }
    return made;
  }

  private static List used(LogicalPlan leaf, Project project, Filter filter) {
    List all = CollectionConverters.asJava((Seq) leaf.output());
    if (project == null) {
      return all;
    }
    AttributeSet used = filter == null ? project.references() : project.references().$plus$plus(filter.references());
    List columns = new ArrayList();
    for (int i = 0; i < all.size(); i++) {
      if (used.contains((Attribute) all.get(i))) {
        columns.add(all.get(i));
      }
    }
    return columns;
  }

  final class Replace extends AbstractFunction1 {
    public Object apply(Object child) {
      return replace((LogicalPlan) child);
    }
  }
}
