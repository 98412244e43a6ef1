package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.conditions.SimpleFirst;
import hms_iceberg.bridge.rowlevel.RowOperation;
import hms_iceberg.bridge.scan.WorkerFiles;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** An Iceberg table in an optimized plan, with the filter and the projection right above it if there are any. */
public final class Scan {
  private static final StructField ROW = new StructField("row", BooleanType$.MODULE$, true, Metadata.empty());

  public final DataSourceV2Relation relation;
  private final Project project;
  private final Filter filter;
  private final LogicalRelation batch;

  private Scan(Project project, Filter filter, DataSourceV2Relation relation, LogicalRelation batch) {
    this.project = project;
    this.filter = filter == null ? null : SimpleFirst.of(filter);
    this.relation = relation;
    this.batch = batch;
  }

  /** Null if the plan is something else. */
  public static Scan of(LogicalPlan plan) {
    Project project = plan instanceof Project ? (Project) plan : null;
    LogicalPlan below = project == null ? plan : project.child();
    Filter filter = below instanceof Filter ? (Filter) below : null;
    LogicalPlan leaf = filter == null ? below : filter.child();
    DataSourceV2Relation batch = StreamBatch.of(leaf);
    if (batch != null) {
      return new Scan(project, filter, batch, (LogicalRelation) leaf);
    }
    boolean found = leaf instanceof DataSourceV2Relation
        && unwrapped(((DataSourceV2Relation) leaf).table()) instanceof IcebergTable;
    return found ? new Scan(project, filter, (DataSourceV2Relation) leaf, null) : null;
  }

  /** The batch of a stream that is read; null if it is the table. */
  public LogicalRelation batch() {
    return batch;
  }

  public IcebergTable table() {
    return (IcebergTable) unwrapped(relation.table());
  }

  private static Table unwrapped(Table table) {
    return table instanceof RowLevelOperationTable ? ((RowLevelOperationTable) table).table() : table;
  }

  /** Whether Spark builds a scan of its own of the table. */
  boolean isReadBySpark() {
    return batch == null && table().isReadBySpark();
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

  boolean uses(String column) {
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

  /** The same over the files that Python reads. */
  public LogicalPlan over(WorkerFiles files, SparkSession session) {
    return over(files, session, projections(), new HashMap());
  }

  /**
   * The same over two sources. Filter and projection go to both, so that Spark prunes each, but an expression such as
   * monotonically_increasing_id() must see all rows as one.
   */
  public LogicalPlan over(LogicalPlan leaf, WorkerFiles files, SparkSession session) {
    boolean above = project != null && !isDeterministic();
    List projections = above ? columns() : projections();
    Map renewed = new HashMap();
    List columns = columns();
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      renewed.put(column.exprId(), column.newInstance());
    }
    List sides = new ArrayList();
    sides.add(new Project(CollectionTools.seq(projections), filter == null ? leaf : withChild(filter, leaf)));
    sides.add(over(files, session, projections, renewed));
    LogicalPlan union = new Union(CollectionTools.seq(sides), false, false);
    return above ? withChild(project, union) : union;
  }

  private LogicalPlan over(WorkerFiles files, SparkSession session, List projections, Map renewed) {
    Renew renew = new Renew(renewed);
    List output = new ArrayList();
    List columns = columns();
    for (int i = 0; i < columns.size(); i++) {
      output.add(renew.apply(columns.get(i)));
    }
    if (output.isEmpty()) {
      output.add(WorkerFiles.attribute(ROW));
    }
    LogicalPlan plan = files.plan(session, table(), columns, output);
    if (filter != null) {
      plan = new Filter((Expression) ((TreeNode) filter.condition()).transform(renew), plan);
    }
    List made = new ArrayList();
    for (int i = 0; i < projections.size(); i++) {
      TreeNode projection = ((TreeNode) projections.get(i)).transform(renew);
      made.add(projection instanceof Alias && !renewed.isEmpty() ? ((Alias) projection).newInstance() : projection);
    }
    return new Project(CollectionTools.seq(made), plan);
  }

  private List projections() {
    return CollectionConverters.asJava(project == null ? relation.output() : project.projectList());
  }

  private boolean isDeterministic() {
    List projections = projections();
    for (int i = 0; i < projections.size(); i++) {
      if (!((Expression) projections.get(i)).deterministic()) {
        return false;
      }
    }
    return true;
  }

  /** Puts attributes in the place of others, by their ids. */
  static final class Renew extends AbstractPartialFunction {
    private final Map renewed;

    Renew(Map renewed) {
      this.renewed = renewed;
    }

    public boolean isDefinedAt(Object expression) {
      return expression instanceof AttributeReference
          && renewed.containsKey(((AttributeReference) expression).exprId());
    }

    public Object apply(Object column) {
      return isDefinedAt(column) ? renewed.get(((AttributeReference) column).exprId()) : column;
    }

    public Object applyOrElse(Object expression, scala.Function1 otherwise) {
      return isDefinedAt(expression) ? apply(expression) : otherwise.apply(expression);
    }
  }
}
