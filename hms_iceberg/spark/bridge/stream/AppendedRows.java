package hms_iceberg.bridge.stream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.scan.TableScan;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/**
 * The rows that are appended to a table. Python says where the stream begins and how far a batch goes; a batch is a scan
 * of the files between two offsets.
 */
public final class AppendedRows implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final Progress progress;
  private final StructType required;
  private final List conditions;
  private TableScan batch;

  /**
   * All rows and columns.
   *
   * @param folder that of this source in the query's checkpoint
   */
  AppendedRows(SparkSession session, DescribedTable table, String folder, Map options) {
    this(
        new Progress(session, table, folder, Json.MAPPER.valueToTree(new HashMap(options))), table.schema(),
        Collections.emptyList());
  }

  private AppendedRows(Progress progress, StructType required, List conditions) {
    this.progress = progress;
    this.required = required;
    this.conditions = conditions;
  }

  /** What is said of the stream in plans. */
  public Scan scan() {
    return new StreamedScan(progress.table, required, null);
  }

  /** The same stream, of which batches use some columns and, by Catalyst's conditions, fewer rows. */
  public AppendedRows of(StructType columns, List tests) {
    List all = new ArrayList(conditions);
    all.addAll(tests);
    return new AppendedRows(progress, columns, all);
  }

  public void prepareForTriggerAvailableNow() {
    progress.bound = progress.table.newestMetadata();
  }

  public ReadLimit getDefaultReadLimit() {
    return new AsOptionsSay();
  }

  /** Where the stream began, or begins now. */
  public Offset initialOffset() {
    JsonNode known = progress.begin.known();
    if (known == null && progress.begin.isOfEarlierVersion()) {
      return new Position(null);
    }
    return new Position(known != null ? known
        : progress.begin.store(progress.table.planner().ask(progress.question("stream-first")).header().get("offset")));
  }

  public Offset latestOffset() {
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is what tells how far a batch goes.");
  }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    ObjectNode question = progress.question("stream-latest");
    question.set("start", ((Position) start).offset);
    question.put("everything", limit instanceof ReadAllAvailable);
    JsonNode offset = progress.table.planner().ask(question).header().get("offset");
    return offset.isNull() ? null : new Position(offset);
  }

  public Offset deserializeOffset(String json) {
    return Position.of(json);
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    DescribedTable table = progress.batch((Position) start, (Position) end);
    batch = new TableScan(table, required, conditions, TableScan.NO_LIMIT, null, null);
    return batch.planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    return batch.createReaderFactory();
  }

  public void commit(Offset end) {}

  public void stop() {}

  /** Spark finds a source by it in what a batch has read, whatever columns that used. */
  public boolean equals(Object other) {
    return other instanceof AppendedRows && ((AppendedRows) other).progress == progress;
  }

  public int hashCode() {
    return System.identityHashCode(progress);
  }

  public String toString() {
    return "Iceberg " + progress.table.name();
  }

  /** Spark asks for the default limit and gives it back, unless a trigger wants all that there is. */
  public static final class AsOptionsSay implements ReadLimit {}

  public static final class Position extends Offset {
    /** Null for the beginning in a checkpoint of an earlier version of ours, which did not keep it. */
    final JsonNode offset;

    public Position(JsonNode offset) {
      this.offset = offset == null || offset.isNull() ? null : offset;
    }

    static Position of(String json) {
      return new Position(Json.read(json));
    }

    public String json() {
      return String.valueOf(offset);
    }
  }

  /** What all batches of a stream share. */
  private static final class Progress {
    public final DescribedTable table;
    public final StreamStart begin;
    private final JsonNode options;
    /** The metadata up to which a query reads that stops when it has read what there is; null for others. */
    private String bound;

    Progress(SparkSession session, DescribedTable table, String folder, JsonNode options) {
      this.table = table;
      this.begin = new StreamStart(folder, session.sessionState().newHadoopConf());
      this.options = options;
    }

    public ObjectNode question(String call) {
      ObjectNode question = Planner.question(call);
      question.put("name", table.name());
      question.put("metadata_location", newest());
      question.set("options", options);
      table.addCatalog(question);
      return question;
    }

    public DescribedTable batch(Position start, Position end) {
      ObjectNode batch = Json.MAPPER.createObjectNode();
      batch.set("start", start.offset);
      batch.set("end", end.offset);
      batch.set("options", options);
      return table.batch(newest(), batch);
    }

    private String newest() {
      return bound == null ? table.newestMetadata() : bound;
    }
  }
}
