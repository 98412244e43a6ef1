package hms_iceberg.bridge.plan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.columns.FixedSettings;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.conditions.SimpleFirst;
import hms_iceberg.bridge.rowlevel.CopyOnWrite;
import hms_iceberg.bridge.rowlevel.MergeOnRead;
import hms_iceberg.bridge.scan.ScanFiles;
import hms_iceberg.bridge.scan.ScanQuestion;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Puts the files of a snapshot in the place of each Iceberg table of an optimized plan, when Spark has brought
 * the filters next to the table: Python plans once with all of them, and what goes into the plan is a relation
 * of files like Spark's own, so that column pruning, dynamic partition pruning, joins by size and the vectorized
 * scan work as for Spark's own tables.
 */
public final class PlanScans extends Rule {
  private final SparkSession session;

  public PlanScans(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return replace((LogicalPlan) plan);
  }

  private LogicalPlan replace(LogicalPlan plan) {
    if (plan instanceof ReplaceData && ((ReplaceData) plan).operation() instanceof CopyOnWrite) {
      ((CopyOnWrite) ((ReplaceData) plan).operation()).prepare((ReplaceData) plan);
    }
    if (plan instanceof WriteDelta && ((WriteDelta) plan).operation() instanceof MergeOnRead) {
      WriteDelta alone = SparkVersions.withoutGroupFilter((WriteDelta) plan);
      LogicalPlan write = MatchingKeys.only(alone, session.sessionState().conf());
      return (LogicalPlan) write.mapChildren(new Replace());
    }
    if ("AddCheckConstraint".equals(plan.getClass().getSimpleName())) { // not of Spark 4.0
      refuseConstraint(plan);
    }
    if (plan instanceof DeleteFromTable) {
      return plan; // of whole files: Spark hands its condition to the table
    }
    LogicalPlan answered = MetadataAnswer.isWhole(plan) ? answered((Aggregate) plan) : null;
    if (answered != null) {
      return answered;
    }
    Scan scan = Scan.of(plan);
    if (scan == null) {
      return (LogicalPlan) plan.mapChildren(new Replace());
    }
    if (scan.isReadBySpark()) {
      return plan;
    }
    LogicalPlan planned = planned(scan, files(scan, null));
    return scan.batch() == null ? planned : (LogicalPlan) planned.transform(new StreamBatch.Streaming(scan.batch()));
  }

  private static void refuseConstraint(LogicalPlan plan) {
    Scan scan = Scan.of(plan);
    if (scan != null) {
      throw Failures.of("UnsupportedError: cannot add a check constraint to the table " + scan.table().name()
          + ": Iceberg tables have no constraints. Nothing was changed.", null);
    }
    for (scala.collection.Iterator it = plan.children().iterator(); it.hasNext();) {
      refuseConstraint((LogicalPlan) it.next());
    }
  }

  /** What metadata knows, else the aggregates of what is read; null if the query asks for something else. */
  private LogicalPlan answered(Aggregate plan) {
    List projections = new ArrayList();
    LogicalPlan source = plan.child();
    Scan scan = Scan.of(source);
    while (scan == null && source instanceof Project) {
      projections.add(source);
      source = ((Project) source).child();
      scan = Scan.of(source);
    }
    if (scan == null || scan.batch() != null) {
      return null; // a stream goes on counting
    }
    if (scan.condition() != null && SubqueryExpression.hasSubquery(scan.condition())) {
      return null; // what is told of the filter leaves subqueries out, and metadata would count all rows
    }
    Map names = scan.names();
    for (int i = projections.size() - 1; i >= 0; i--) {
      names = Scan.names((Project) projections.get(i), names);
    }
    ArrayNode asked = MetadataAnswer.asked(plan, names);
    if (asked == null) {
      return null;
    }
    ScanFiles files = files(scan, asked);
    if (files.aggregates() != null) {
      return MetadataAnswer.constant(plan, names, files.aggregates());
    }
    if (scan.isReadBySpark()) {
      return plan;
    }
    LogicalPlan replaced = planned(scan, files);
    for (int i = projections.size() - 1; i >= 0; i--) {
      replaced = Scan.withChild((LogicalPlan) projections.get(i), replaced);
    }
    return Scan.withChild(plan, replaced);
  }

  final class Replace extends AbstractFunction1 {
    public Object apply(Object child) {
      return replace((LogicalPlan) child);
    }
  }

  private ScanFiles files(Scan scan, ArrayNode aggregates) {
    UnsupportedTypes.refuse(scan.table().name(), scan.table().idSchema(), scan.columns(), false);
    boolean marksDeleted = marksDeleted(scan);
    ObjectNode question =
        ScanQuestion.of(scan.table(), filter(scan), marksDeleted, scan.uses(MetadataColumns.PARTITION));
    if (scan.operation() != null) {
      question.put("whole_files", scan.operation() instanceof CopyOnWrite);
      question.put("all_deletes", true);
    } else if (aggregates != null && !marksDeleted) {
      return ScanQuestion.ask(scan.table(), question, aggregates);
    }
    ScanFiles files = ScanQuestion.ask(scan.table(), question);
    if (!(scan.operation() instanceof CopyOnWrite)) {
      return files;
    }
    scan.operation().planned(files.paths());
    return files.replacedBy(scan.operation());
  }

  /** Whether the query uses the column _deleted, and so gets deleted rows too. */
  private static boolean marksDeleted(Scan scan) {
    return scan.uses(MetadataColumns.DELETED) && scan.table().hides(MetadataColumns.DELETED);
  }

  /** By what files are planned; null for all. */
  private static ObjectNode filter(Scan scan) {
    ObjectNode filter = conditionText(scan);
    return scan.operation() == null ? filter : scan.operation().planFilter(filter);
  }

  private static ObjectNode conditionText(Scan scan) {
    return scan.condition() == null ? null : ScanQuestion.filter(
        SimpleFirst.split(scan.condition()), CollectionConverters.asJava(scan.relation.output()));
  }

  private LogicalPlan planned(Scan scan, ScanFiles files) {
    if (files.workerFiles() == null) {
      return scan.over(relation(scan, files));
    }
    return files.isEmpty()
        ? scan.over(files.workerFiles(), session)
        : scan.over(relation(scan, files), files.workerFiles(), session);
  }

  private LogicalPlan relation(Scan scan, ScanFiles files) {
    DataSourceV2Relation relation = scan.relation;
    IcebergTable table = scan.table();
    List output = CollectionConverters.asJava(relation.output());
    Set constant = files.partitionColumns();
    List dataFields = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      AttributeReference column = (AttributeReference) output.get(i);
      if (!constant.contains(column.name())) {
        dataFields.add(new StructField(column.name(), column.dataType(), column.nullable(), Metadata.empty()));
      }
    }
    HadoopFsRelation scanned = new HadoopFsRelation(
        files,
        files.partitionSchema(),
        new StructType((StructField[]) dataFields.toArray(new StructField[0])),
        Option.empty(),
        new IcebergFormat(table, files, scan.operation() instanceof CopyOnWrite, conditionText(scan)),
        FixedSettings.relationOptions(),
        table.sized(session));
    SQLConf conf = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
    return conf.cboEnabled() || conf.planStatsEnabled()
        ? SparkVersions.logicalRelation(
            (BaseRelation) scanned, relation.output(), table.name(), files.sizeInBytes(), files.rowCount())
        : SparkVersions.logicalRelation((BaseRelation) scanned, relation.output());
  }
}
