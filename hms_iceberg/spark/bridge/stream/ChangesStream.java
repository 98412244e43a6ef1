package hms_iceberg.bridge.stream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.scan.ChangesScan;
import hms_iceberg.bridge.scan.StreamMaker;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.TableSource;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/**
 * Changed rows as they are committed. A batch has whole commits. Rows that came and went are left out, if that is wanted,
 * within a batch.
 */
public final class ChangesStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final ChangesScan.Described changes;
  private final TableSource source;
  private final StructType columns;
  private final StreamStart begin;
  /** The metadata up to which a query reads that stops when it has read what there is; null for others. */
  private String bound;
  private ChangesScan batch;

  private ChangesStream(
      SparkSession session, ChangesScan.Described changes, TableSource source, String folder, StructType columns) {
    this.changes = changes;
    this.source = source;
    this.columns = columns;
    this.begin = new StreamStart(folder, session.sessionState().newHadoopConf());
  }

  public void prepareForTriggerAvailableNow() {
    bound = newest();
  }

  /** Where the stream began, or begins now. */
  public Offset initialOffset() {
    JsonNode known = begin.known();
    return new AppendedRows.Position(known != null ? known
        : begin.store(changes.planner.ask(question("changes-first")).header().get("offset")));
  }

  public Offset latestOffset() {
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is what tells how far a batch goes.");
  }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    ObjectNode question = question("changes-latest");
    question.set("start", ((AppendedRows.Position) start).offset);
    JsonNode offset = changes.planner.ask(question).header().get("offset");
    return offset.isNull() ? null : new AppendedRows.Position(offset);
  }

  public Offset deserializeOffset(String json) {
    return AppendedRows.Position.of(json);
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    ObjectNode question = question("changed-rows");
    ObjectNode asked = question.putObject("batch");
    asked.set("start", ((AppendedRows.Position) start).offset);
    asked.set("end", ((AppendedRows.Position) end).offset);
    batch = changes.batch(question, columns);
    return batch.planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    return batch.createReaderFactory();
  }

  private ObjectNode question(String call) {
    ObjectNode question = (ObjectNode) changes.question.deepCopy();
    question.put("call", call);
    question.put("metadata_location", bound == null ? newest() : bound);
    return question;
  }

  private String newest() {
    String location = source.metadataLocation();
    if (location == null) {
      throw Failures.of("NoSuchTableError: cannot stream the changes of " + source.name() + " on: the table was dropped."
          + " Start the stream with a new checkpoint if it is made anew.", null);
    }
    return location;
  }

  public void commit(Offset end) {}

  public void stop() {}

  public String toString() {
    return "Iceberg " + changes.name();
  }

  /** Begins streams of the changes of one table. */
  public static final class Maker implements StreamMaker {
    private final ChangesScan.Described changes;
    private final TableSource source;

    public Maker(ChangesScan.Described changes, TableSource source) {
      this.changes = changes;
      this.source = source;
    }

    public Scan scan() {
      return new ChangesScan.Builder(changes, this).build();
    }

    public MicroBatchStream stream(String checkpoint, StructType columns, List conditions) {
      return new ChangesStream((SparkSession) SparkSession.active(), changes, source, checkpoint, columns);
    }
  }
}
