package hms_iceberg.bridge.avro;

import hms_iceberg.bridge.files.FileKey;
import hms_iceberg.bridge.output.EncryptedStream;
import hms_iceberg.bridge.output.FileOutput;
import hms_iceberg.bridge.output.NewFile;
import hms_iceberg.bridge.output.RowMetrics;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.output.WrittenFile;
import hms_iceberg.bridge.partitions.PartitionKey;
import java.io.IOException;
import java.util.Iterator;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.io.DatumWriter;
import org.apache.avro.io.Encoder;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;

/** One Avro file that is being written: blocks by Avro's own library, records straight from Spark's rows. */
public final class AvroOutput implements FileOutput {
  private final String location;
  private final Configuration conf;
  private final RowMetrics metrics;
  private final PositionOutputStream stream;
  /** Null if the table is not encrypted. */
  private final FileKey key;
  private final DataFileWriter writer;
  private long rows;

  public AvroOutput(WriteRules rules, Configuration conf, String location) throws IOException {
    this.location = location;
    this.conf = conf;
    this.metrics = RowMetrics.of(rules.schema, rules.columns);
    Schema schema = new Schema.Parser().parse(rules.fileType);
    this.writer = new DataFileWriter(new Records(new AvroFields(rules, schema)));
    writer.setCodec(CodecFactory.fromString(rules.codec));
    for (Iterator it = rules.footer.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      writer.setMeta((String) entry.getKey(), (String) entry.getValue());
    }
    this.key = rules.keyBytes == 0 ? null : FileKey.random(rules.keyBytes);
    PositionOutputStream file = NewFile.at(new Path(location), conf).create(0);
    boolean done = false;
    try {
      this.stream = key == null ? file : new EncryptedStream(file, key);
      writer.create(schema, stream);
      done = true;
    } finally {
      if (!done) {
        file.close();
      }
    }
  }

  public void write(InternalRow row) throws IOException {
    metrics.add(row);
    try {
      writer.append(row);
    } catch (DataFileWriter.AppendWriteException e) {
      if (e.getCause() instanceof IOException) {
        throw (IOException) e.getCause();
      }
      throw (RuntimeException) e.getCause();
    }
    rows++;
  }

  public long size() {
    try {
      return stream.getPos();
    } catch (IOException e) {
      return 0; // its next byte tells
    }
  }

  public WrittenFile close(PartitionKey partition) throws IOException {
    writer.flush();
    long size = key == null ? stream.getPos() : ((EncryptedStream) stream).finish();
    writer.close();
    return WrittenFile.counted(
        location, "avro", size, rows, partition, metrics, new long[0], key == null ? null : key.encoded(size));
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

  static final class Records implements DatumWriter {
    private final AvroFields fields;

    Records(AvroFields fields) {
      this.fields = fields;
    }

    public void setSchema(Schema schema) {}

    public void write(Object row, Encoder to) throws IOException {
      fields.write((InternalRow) row, to);
    }
  }
}
