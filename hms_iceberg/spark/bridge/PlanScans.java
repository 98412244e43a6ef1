package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
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

  PlanScans(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return replace((LogicalPlan) plan);
  }

  private LogicalPlan replace(LogicalPlan plan) {
    if (isIceberg(plan)) {
      return scan((DataSourceV2Relation) plan, null);
    }
    if (plan instanceof Filter && isIceberg(((Filter) plan).child())) {
      Filter filter = (Filter) plan;
      LogicalPlan files = scan((DataSourceV2Relation) filter.child(), filter.condition());
      return (LogicalPlan) filter.withNewChildren(CollectionTools.seq(Collections.singletonList(files)));
    }
    return (LogicalPlan) plan.mapChildren(new Replace());
  }

  final class Replace extends AbstractFunction1 {
    public Object apply(Object child) {
      return replace((LogicalPlan) child);
    }
  }

  private static boolean isIceberg(LogicalPlan plan) {
    return plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof IcebergTable;
  }

  private LogicalPlan scan(DataSourceV2Relation relation, Expression condition) {
    IcebergTable table = (IcebergTable) relation.table();
    List output = CollectionConverters.asJava(relation.output());
    ObjectNode question = Bridge.question("plan");
    question.put("name", table.name());
    question.put("metadata_location", table.metadataLocation());
    question.put("snapshot_id", table.snapshotId());
    question.put("schema_id", table.schemaId());
    if (condition != null) {
      question.set("filter", FilterText.of(condition, output));
    }
    ScanFiles files = new ScanFiles(table, Bridge.ask(question));
    Set constant = files.partitionColumns();
    List partitionFields = new ArrayList();
    List dataFields = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      AttributeReference column = (AttributeReference) output.get(i);
      StructField field = new StructField(column.name(), column.dataType(), column.nullable(), Metadata.empty());
      if (!constant.contains(column.name())) {
        dataFields.add(field);
      }
    }
    HadoopFsRelation scanned = new HadoopFsRelation(
        files,
        files.partitionSchema(),
        new StructType((StructField[]) dataFields.toArray(new StructField[0])),
        Option.empty(),
        new IcebergFormat(files.description(), table.idSchema(), files.nameMapping(), files.isPlain()),
        Map$.MODULE$.empty(),
        session);
    return SparkVersions.logicalRelation((BaseRelation) scanned, relation.output());
  }
}
