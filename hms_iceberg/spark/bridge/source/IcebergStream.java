package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * The rows that are appended to a table. Python says how far a batch goes; a batch is a scan of files like any
 * other, which is why this is a source that makes plans and not one that reads.
 */
final class IcebergStream implements Source, SupportsTriggerAvailableNow {
  private final SparkSession session;
  private final IcebergTable table;
  private final JsonNode options;
  /** The metadata up to which a query reads that stops when it has read what there is; null for others. */
  private String bound;

  IcebergStream(SparkSession session, IcebergTable table, JsonNode options) {
    this.session = session;
    this.table = table;
    this.options = options;
  }

  public StructType schema() {
    return table.schema();
  }

  public void prepareForTriggerAvailableNow() {
    bound = table.newestMetadata();
  }

  public ReadLimit getDefaultReadLimit() {
    return new AsOptionsSay();
  }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    ObjectNode question = Bridge.question("stream-latest");
    question.put("name", table.name());
    question.put("metadata_location", bound == null ? table.newestMetadata() : bound);
    question.set("start", start == null ? null : Json.read(start.json()));
    question.put("everything", limit instanceof ReadAllAvailable);
    question.set("options", options);
    table.addCatalog(question);
    JsonNode offset = table.planner().ask(question).header().get("offset");
    return offset.isNull() ? null : new Position(offset.toString());
  }

  public Option getOffset() {
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is what tells how far a batch goes.");
  }

  public Dataset getBatch(Option start, Offset end) {
    ObjectNode batch = Bridge.JSON.createObjectNode();
    batch.set("start", start.isEmpty() ? null : Json.read(((Offset) start.get()).json()));
    batch.set("end", Json.read(end.json()));
    batch.set("options", options);
    IcebergTable part = table.batch(bound == null ? table.newestMetadata() : bound, batch);
    LogicalPlan relation = DataSourceV2Relation.create(part, Option.empty(), Option.empty());
    LogicalPlan plan = (LogicalPlan) new PlanScans(session).apply(relation);
    return Dataset$.MODULE$.ofRows(session, (LogicalPlan) plan.transform(new Streaming()));
  }

  public void stop() {}

  public String toString() {
    return "Iceberg " + table.name();
  }

  /** Spark asks for the default limit and gives it back, unless a trigger wants all that there is. */
  static final class AsOptionsSay implements ReadLimit {}

  static final class Position extends Offset {
    private final String json;

    Position(String json) {
      this.json = json;
    }

    public String json() {
      return json;
    }
  }

  /** Spark aggregates in another way if a leaf of the plan says that it is part of a stream. */
  static final class Streaming extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      return plan instanceof LogicalRelation;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      return isDefinedAt(plan) ? SparkVersions.streaming((LogicalRelation) plan) : otherwise.apply(plan);
    }
  }
}
