package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.read.ChangesReaders;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.ExecutorConf;
import hms_iceberg.bridge.wire.Planner;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Changed rows of a table. Tasks read files of which all rows have one change; what Python had to compare, it sends as
 * Arrow.
 */
public final class ChangesScan implements Scan, Batch, SupportsReportStatistics {
  private final SparkSession session = (SparkSession) SparkSession.active();
  private final Described changes;
  private final StructType required;
  private final ObjectNode filter;
  private final StreamMaker streams;
  private PlannedChanges planned;

  private ChangesScan(Described changes, StructType required, ObjectNode filter, StreamMaker streams) {
    this.changes = changes;
    this.required = required;
    this.filter = filter;
    this.streams = streams;
  }

  public StructType readSchema() {
    return required;
  }

  public String description() {
    return "iceberg " + changes.name;
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return returnsBatches() ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  private boolean returnsBatches() {
    return new ParquetFileFormat().supportBatch(session, required);
  }

  public Statistics estimateStatistics() {
    return new DescribedTable.Estimate(changes.schema, changes.size, null);
  }

  public Batch toBatch() {
    return this;
  }

  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return streams.stream(checkpoint, required, null);
  }

  private synchronized PlannedChanges planned() {
    if (planned == null) {
      ObjectNode question = (ObjectNode) changes.question.deepCopy();
      question.put("call", "changed-rows");
      question.put("schema_id", changes.schemaId);
      if (filter != null) {
        question.set("filter", filter);
      }
      ArrayNode columns = question.putArray("columns");
      for (int i = 0; i < required.fields().length; i++) {
        columns.add(required.fields()[i].name());
      }
      UnsupportedTypes.refuse(changes.name, wanted());
      planned = new PlannedChanges(changes.planner.ask(question));
    }
    return planned;
  }

  private StructType wanted() {
    return (StructType) Structs.withIds(required, changes.idSchema);
  }

  public InputPartition[] planInputPartitions() {
    return planned().partitions(session, wanted());
  }

  public PartitionReaderFactory createReaderFactory() {
    Configuration conf = session.sessionState().newHadoopConf();
    ReadSettings settings = ReadSettings.of(session, conf, required);
    settings.returnBatches = returnsBatches();
    return new ChangesReaders(planned().reader(ExecutorConf.of(session, conf), wanted(), settings));
  }

  public boolean equals(Object other) {
    return other instanceof ChangesScan && changes.question.equals(((ChangesScan) other).changes.question)
        && required.equals(((ChangesScan) other).required)
        && String.valueOf(filter).equals(String.valueOf(((ChangesScan) other).filter));
  }

  public int hashCode() {
    return changes.question.hashCode();
  }

  public String toString() {
    return description();
  }

  /** Changes as Python describes them. */
  public static final class Described {
    public final Planner planner;
    public final ObjectNode question;
    public final StructType schema;
    private final String name;
    private final StructType idSchema;
    private final int schemaId;
    private final long size;
    private final JsonNode filteredBy;

    /** The question is that which loads a table, with what is said of the changes. */
    public Described(Planner planner, ObjectNode question) {
      this.planner = planner;
      this.question = question;
      this.name = question.get("name").asText() + ".changes";
      question.put("call", "changes");
      JsonNode described = planner.ask(question).header();
      this.idSchema = UnsupportedTypes.parse(described.get("schema"));
      this.schemaId = described.get("schema_id").asInt();
      this.size = described.get("size_in_bytes").asLong();
      this.filteredBy = described.get("filtered_by");
      this.schema = DescribedTable.withoutIds(idSchema);
    }

    private Described(Described other, ObjectNode question) {
      this.planner = other.planner;
      this.question = question;
      this.name = other.name;
      this.idSchema = other.idSchema;
      this.schemaId = other.schemaId;
      this.size = other.size;
      this.filteredBy = other.filteredBy;
      this.schema = other.schema;
    }

    public String name() {
      return name;
    }

    /** The same with all options of the read; Spark looks for changes by some of them only. */
    public Described with(Map options) {
      ObjectNode asked = (ObjectNode) question.deepCopy();
      ObjectNode known = asked.withObject("/options");
      for (Iterator it = options.entrySet().iterator(); it.hasNext();) {
        Map.Entry option = (Map.Entry) it.next();
        known.put((String) option.getKey(), (String) option.getValue());
      }
      return new Described(this, asked);
    }

    /** The rows of a batch of a stream, in the columns that the stream has. */
    public ChangesScan batch(ObjectNode asked, StructType columns) {
      return new ChangesScan(new Described(this, asked), columns, null, null);
    }

    private boolean isFilteredBy(Expression condition) {
      List attributes = ScanQuestion.names(condition);
      for (int i = 0; i < attributes.size(); i++) {
        String name = (String) attributes.get(i);
        boolean isChange = Structs.has(changeColumns(), name);
        if (isChange || !filteredBy.isNull() && !hasText(filteredBy, name)) {
          return false;
        }
      }
      return condition.deterministic() && !attributes.isEmpty();
    }

    /** The last three. */
    private StructType changeColumns() {
      StructType last = new StructType();
      for (int i = schema.fields().length - 3; i < schema.fields().length; i++) {
        last = last.add(schema.fields()[i]);
      }
      return last;
    }

    private static boolean hasText(JsonNode names, String name) {
      for (int i = 0; i < names.size(); i++) {
        if (name.equals(Json.at(names, i).asText())) {
          return true;
        }
      }
      return false;
    }
  }

  /** Takes what Spark asks of the changes. Rows are left out by conditions only if both sides of a change are. */
  public static final class Builder extends FilteredBuilder {
    private final Described changes;
    private final StreamMaker streams;
    private StructType required;
    private List conditions = new ArrayList();

    /** Streams may be null where there are none. */
    public Builder(Described changes, StreamMaker streams) {
      this.changes = changes;
      this.streams = streams;
      this.required = changes.schema;
    }

    public Seq pushFilters(Seq filters) {
      conditions = new ArrayList();
      List all = CollectionConverters.asJava(filters);
      for (int i = 0; i < all.size(); i++) {
        if (changes.isFilteredBy((Expression) all.get(i))) {
          conditions.add(all.get(i));
        }
      }
      return CollectionTools.seq(all);
    }

    public Predicate[] pushedFilters() {
      return new Predicate[0];
    }

    public void pruneColumns(StructType columns) {
      required = columns;
    }

    public Scan build() {
      ObjectNode filter = ScanQuestion.filter(conditions, ScanQuestion.attributes(conditions));
      return new ChangesScan(changes, required, filter, streams);
    }
  }
}
