package hms_iceberg.bridge.source;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.plan.StreamBatch;
import hms_iceberg.bridge.stream.StreamStart;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * The rows that are appended to a table. Python says where the stream begins and how far a batch goes; a batch is a scan
 * of files like any other, which is why this is a source that makes plans and not one that reads.
 */
final class IcebergStream implements Source, SupportsTriggerAvailableNow {
  private final SparkSession session;
  private final StreamStart begin;
  private final IcebergTable table;
  private final JsonNode options;
  /** The metadata up to which a query reads that stops when it has read what there is; null for others. */
  private String bound;

  /** The folder is that of this source in the query's checkpoint. */
  IcebergStream(SparkSession session, String folder, IcebergTable table, JsonNode options) {
    this.session = session;
    this.begin = new StreamStart(folder, session.sessionState().newHadoopConf());
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
    ObjectNode question = question("stream-latest");
    question.set("start", start == null ? begins() : Json.read(start.json()));
    question.put("everything", limit instanceof ReadAllAvailable);
    JsonNode offset = table.planner().ask(question).header().get("offset");
    return offset.isNull() ? null : new Position(offset.toString());
  }

  /** Where the stream began, or begins now. */
  private JsonNode begins() {
    JsonNode known = begin.known();
    return known != null ? known : begin.store(table.planner().ask(question("stream-first")).header().get("offset"));
  }

  private ObjectNode question(String call) {
    ObjectNode question = Planner.question(call);
    question.put("name", table.name());
    question.put("metadata_location", newest());
    question.set("options", options);
    table.addCatalog(question);
    return question;
  }

  private String newest() {
    return bound == null ? table.newestMetadata() : bound;
  }

  public Option getOffset() {
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is what tells how far a batch goes.");
  }

  /** A batch that has finished is asked for as well when a query starts again: what is read is planned when it is run. */
  public Dataset getBatch(Option start, Offset end) {
    ObjectNode batch = Json.MAPPER.createObjectNode();
    batch.set("start", start.isEmpty() ? begin.known() : Json.read(((Offset) start.get()).json()));
    batch.set("end", Json.read(end.json()));
    batch.set("options", options);
    return Dataset$.MODULE$.ofRows(session, new StreamBatch(session, table.batch(newest(), batch)).plan());
  }

  public void stop() {}

  public String toString() {
    return "Iceberg " + table.name();
  }

  /** Spark asks for the default limit and gives it back, unless a trigger wants all that there is. */
  public static final class AsOptionsSay implements ReadLimit {}

  public static final class Position extends Offset {
    private final String json;

    public Position(String json) {
      this.json = json;
    }

    public String json() {
      return json;
    }
  }
}
