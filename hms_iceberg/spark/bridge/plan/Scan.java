package hms_iceberg.bridge.plan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.conditions.SimpleFirst;
import hms_iceberg.bridge.rowlevel.RowOperation;
import hms_iceberg.bridge.scan.ScanQuestion;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/** An Iceberg table in an optimized plan, with the filter and the projection right above it if there are any. */
public final class Scan {
  public final DataSourceV2Relation relation;
  private final Project project;
  private final Filter filter;

  private Scan(Project project, Filter filter, DataSourceV2Relation relation) {
    this.project = project;
    this.filter = filter == null ? null : SimpleFirst.of(filter);
    this.relation = relation;
  }

  /** Null if the plan is something else. */
  public static Scan of(LogicalPlan plan) {
    Project project = plan instanceof Project ? (Project) plan : null;
    LogicalPlan below = project == null ? plan : project.child();
    Filter filter = below instanceof Filter ? (Filter) below : null;
    LogicalPlan leaf = filter == null ? below : filter.child();
    boolean found = leaf instanceof DataSourceV2Relation
        && unwrapped(((DataSourceV2Relation) leaf).table()) instanceof IcebergTable;
    return found ? new Scan(project, filter, (DataSourceV2Relation) leaf) : null;
  }

  public IcebergTable table() {
    return (IcebergTable) unwrapped(relation.table());
  }

  private static Table unwrapped(Table table) {
    return table instanceof RowLevelOperationTable ? ((RowLevelOperationTable) table).table() : table;
  }

  /** The operation that changes the rows which are read, or null if they are only read. */
  public RowOperation operation() {
    Table table = relation.table();
    return table instanceof RowLevelOperationTable
        ? (RowOperation) ((RowLevelOperationTable) table).operation() : null;
  }

  /** The filter, or null. */
  public Expression condition() {
    return filter == null ? null : filter.condition();
  }

  /** The columns of the table that the projection and the filter use, in the table's order. */
  public List columns() {
    List all = CollectionConverters.asJava(relation.output());
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

  /** What its files are asked for by. */
  ObjectNode question() {
    ObjectNode filter = condition() == null ? null : ScanQuestion.filter(
        SimpleFirst.split(condition()), CollectionConverters.asJava(relation.output()));
    ObjectNode question = ScanQuestion.of(table(), filter, marksDeleted(), uses(MetadataColumns.PARTITION));
    ScanQuestion.addChange(question, operation());
    return question;
  }

  /** Whether the query uses the column _deleted, and so gets deleted rows too. */
  boolean marksDeleted() {
    return uses(MetadataColumns.DELETED) && table().hides(MetadataColumns.DELETED);
  }

  private boolean uses(String column) {
    List columns = columns();
    for (int i = 0; i < columns.size(); i++) {
      if (((Attribute) columns.get(i)).name().equals(column)) {
        return true;
      }
    }
    return false;
  }

  /** The names of the table's columns by the ids of the attributes that are these columns, under whatever name. */
  public Map names() {
    Map names = new HashMap();
    List all = CollectionConverters.asJava(relation.output());
    for (int i = 0; i < all.size(); i++) {
      names.put(((Attribute) all.get(i)).exprId(), ((Attribute) all.get(i)).name());
    }
    return project == null ? names : names(project, names);
  }

  /** The same after another projection. */
  public static Map names(Project project, Map below) {
    Map names = new HashMap();
    List list = CollectionConverters.asJava(project.projectList());
    for (int i = 0; i < list.size(); i++) {
      NamedExpression named = (NamedExpression) list.get(i);
      Object column = named instanceof Alias ? (Object) ((Alias) named).child() : named;
      Object name = column instanceof Attribute ? below.get(((Attribute) column).exprId()) : null;
      if (name != null) {
        names.put(named.exprId(), name);
      }
    }
    return names;
  }

  /** The same with another plan, of the same columns, in the place of the table. */
  public LogicalPlan over(LogicalPlan leaf) {
    LogicalPlan plan = filter == null ? leaf : withChild(filter, leaf);
    return project == null ? plan : withChild(project, plan);
  }

  static LogicalPlan withChild(LogicalPlan plan, LogicalPlan child) {
    return (LogicalPlan) plan.withNewChildren(CollectionTools.seq(Collections.singletonList(child)));
  }
}
