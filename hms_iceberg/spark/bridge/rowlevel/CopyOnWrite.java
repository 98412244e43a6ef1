package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.conditions.CommonExpressions;
import hms_iceberg.bridge.conditions.FilterText;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/** Writes the files anew that hold rows which change. */
public final class CopyOnWrite extends RowOperation {
  private final ReplacedFiles replaced;
  private final List kept = new ArrayList();
  private ObjectNode filter;
  private LogicalPlan matching;

  CopyOnWrite(DescribedTable table, RowLevelOperationInfo info) {
    super(table, info);
    replaced = new ReplacedFiles(table);
  }

  /** One at least: if none is asked for, Spark before 4.3 hands the writer rows with a column of its own in them. */
  public NamedReference[] requiredMetadataAttributes() {
    List columns = metadata();
    return references(columns.isEmpty() ? Collections.singletonList(MetadataColumns.SPEC_ID) : columns);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new CopyOnWriteWrite.Builder(this, info);
  }

  /**
   * Takes from the plan what decides of the files. Rows that stay must be read as well as those that change, so that the
   * filter of the plan's own scan says nothing of files.
   */
  public void prepare(ReplaceData plan) {
    DataSourceV2Relation relation = (DataSourceV2Relation) plan.originalTable();
    Expression condition = CommonExpressions.inlined(plan.condition(), plan.query());
    filter = FilterText.of(condition, CollectionConverters.asJava(relation.withMetadataColumns().output()));
    Expression rows = plan.groupFilterCondition().isEmpty() ? null : (Expression) plan.groupFilterCondition().get();
    matching = choosesFiles(rows) ? matching(relation, CommonExpressions.inlined(rows, plan.query())) : null;
  }

  /** What may hold for other rows when it is asked again says nothing of files. */
  private static boolean choosesFiles(Expression rows) {
    return rows != null && SameTwice.is(rows)
        && !(rows instanceof Literal && Boolean.TRUE.equals(((Literal) rows).value()));
  }

  /** Called with what a query of the statement is kept in. */
  public void keep(CachedRDDBuilder rows) {
    kept.add(rows);
  }

  /** Called when the statement has ended. */
  void forget() {
    for (int i = 0; i < kept.size(); i++) {
      ((CachedRDDBuilder) kept.get(i)).clearCache(false);
    }
  }

  /** The files with rows that match. The plan is analyzed already, and partly optimized. */
  private static LogicalPlan matching(DataSourceV2Relation table, Expression condition) {
    DataSourceV2Relation relation = table.withMetadataColumns();
    List columns = CollectionConverters.asJava(relation.output());
    Attribute file = null;
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      file = column.name().equals(MetadataColumns.FILE) ? column : file;
    }
    LogicalPlan rows = new Filter(condition, relation);
    LogicalPlan files = new Distinct(new Project(CollectionTools.seq(Collections.singletonList(file)), rows));
    files.setAnalyzed();
    return files;
  }

  public ObjectNode filter() {
    return filter;
  }

  public ObjectNode planFilter(ObjectNode scanned) {
    return filter;
  }

  public boolean replacesFiles() {
    return true;
  }

  public void planned(List paths) {
    replaced.plan(paths, matching);
  }

  /** All of these are replaced. */
  public Set filesToRead() {
    return replaced.paths();
  }
}
