package hms_iceberg.bridge.orc;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.output.FileOutput;
import hms_iceberg.bridge.output.NewFile;
import hms_iceberg.bridge.output.RowMetrics;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.output.WrittenFile;
import hms_iceberg.bridge.partitions.PartitionKey;
import hms_iceberg.bridge.wire.Json;
import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.orc.impl.PhysicalFsWriter;
import org.apache.orc.impl.writer.WriterEncryptionVariant;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;

/** One ORC file that is being written, by ORC's own writer of batches. */
public final class OrcOutput implements FileOutput {
  /** What values in memory become in a file, about; the same as in Apache Iceberg. */
  private static final double OF_MEMORY = 0.2;

  private final String location;
  private final Configuration conf;
  private final RowMetrics metrics;
  private final OrcFields fields;
  private final VectorizedRowBatch batch;
  private final PositionOutputStream stream;
  private final Writer writer;
  private long rows;

  public OrcOutput(WriteRules rules, Configuration conf, String location) throws IOException {
    this.location = location;
    this.conf = conf;
    this.metrics = RowMetrics.of(rules.schema, rules.columns);
    TypeDescription type = type(Json.read(rules.fileType));
    this.batch = type.createRowBatch(TypeDescription.RowBatchVersion.USE_DECIMAL64, VectorizedRowBatch.DEFAULT_SIZE);
    this.fields = new OrcFields(rules, type, batch);
    batch.reset();
    Path path = new Path(location);
    // Days and times are stored as they are; the mark of the calendar is that of Apache Iceberg's files.
    OrcFile.WriterOptions options =
        OrcFile.writerOptions(conf).setSchema(type).useUTCTimestamp(true).setProlepticGregorian(false);
    this.stream = NewFile.at(path, conf).create(options.getBlockSize());
    boolean done = false;
    try {
      options.physicalWriter(
          new PhysicalFsWriter(new FSDataOutputStream(stream, null), options, new WriterEncryptionVariant[0]));
      this.writer = OrcFile.createWriter(path, options);
      done = true;
    } finally {
      if (!done) {
        stream.close();
      }
    }
  }

  /** A type from its text, and the attributes of each of its columns by their number. */
  private static TypeDescription type(JsonNode described) {
    TypeDescription type = TypeDescription.fromString(described.get("type").asText());
    JsonNode attributes = described.get("attributes");
    for (int i = 0; i < attributes.size(); i++) {
      for (Iterator it = Json.at(attributes, i).fields(); it.hasNext();) {
        Map.Entry attribute = (Map.Entry) it.next();
        type.findSubtype(i).setAttribute((String) attribute.getKey(), ((JsonNode) attribute.getValue()).asText());
      }
    }
    return type;
  }

  public void write(InternalRow row) throws IOException {
    metrics.add(row);
    fields.write(row, batch.size++);
    rows++;
    if (batch.size == batch.getMaxSize()) {
      flush();
    }
  }

  private void flush() throws IOException {
    writer.addRowBatch(batch);
    batch.reset();
  }

  public long size() {
    try {
      return stream.getPos() + (long) (OF_MEMORY * writer.estimateMemory());
    } catch (IOException e) {
      return 0; // its next byte tells
    }
  }

  public WrittenFile close(PartitionKey partition) throws IOException {
    if (batch.size > 0) {
      flush();
    }
    writer.close();
    List stripes = writer.getStripes();
    long[] splits = new long[stripes.size()];
    for (int i = 0; i < splits.length; i++) {
      splits[i] = ((StripeInformation) stripes.get(i)).getOffset();
    }
    return WrittenFile.counted(location, "orc", stream.getPos(), rows, partition, metrics, splits, null);
  }

  public void abandon() {
    try {
      writer.close();
    } catch (Exception e) {
      // What was wrong with the file is known already; it goes.
    } finally {
      WrittenFile.abandon(stream, location, conf);
    }
  }
}
