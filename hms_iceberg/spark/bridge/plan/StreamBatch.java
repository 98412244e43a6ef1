package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.SparkVersions;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/** A batch of a stream in a plan, until `PlanScans` puts its files in its place. */
public final class StreamBatch extends BaseRelation {
  private final SparkSession session;
  private final DescribedTable table;

  public StreamBatch(SparkSession session, DescribedTable table) {
    this.session = session;
    this.table = table;
  }

  /** A relation of this that says that it is part of a stream, as Spark wants it. */
  public LogicalPlan plan() {
    return SparkVersions.streaming(this, relation().output());
  }

  private DataSourceV2Relation relation() {
    return DataSourceV2Relation.create(table, Option.empty(), Option.empty());
  }

  /** The table whose files are to be read, with the attributes of the plan; null if the plan is no batch. */
  public static DataSourceV2Relation of(LogicalPlan plan) {
    boolean found = plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof StreamBatch;
    if (!found) {
      return null;
    }
    DataSourceV2Relation relation = ((StreamBatch) ((LogicalRelation) plan).relation()).relation();
    return (DataSourceV2Relation) SparkVersions.with(relation, 1, plan.output());
  }

  public SQLContext sqlContext() {
    return session.sqlContext();
  }

  public StructType schema() {
    return table.schema();
  }

  public String toString() {
    return "Iceberg " + table.name();
  }

  /** Files in the place of a batch are part of its stream: Spark aggregates in another way then, and counts their rows. */
  static final class Streaming extends AbstractPartialFunction {
    private final LogicalRelation batch;

    Streaming(LogicalRelation batch) {
      this.batch = batch;
    }

    public boolean isDefinedAt(Object plan) {
      return plan instanceof LogicalRelation;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      return isDefinedAt(plan) ? SparkVersions.inStreamOf(batch, (LogicalRelation) plan) : otherwise.apply(plan);
    }
  }
}
