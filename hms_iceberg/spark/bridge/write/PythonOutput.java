package hms_iceberg.bridge.write;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.output.FileOutput;
import hms_iceberg.bridge.output.PythonWriter;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.output.WrittenFile;
import hms_iceberg.bridge.partitions.PartitionKey;
import hms_iceberg.bridge.wire.SparkVersions;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Base64;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;

/** One file that a Python process writes; rows go there through Arrow. */
final class PythonOutput implements FileOutput {
  private static final int BATCH_ROWS = 10000;

  private final PythonWriter python;
  private final int file;
  private final String location;
  private final BufferAllocator allocator = new RootAllocator();
  private final VectorSchemaRoot root;
  private final ArrowWriter writer;
  private int waiting;
  private long rows;
  private long size;

  PythonOutput(PythonWriter python, WriteRules rules, int file, String location) throws IOException {
    this.python = python;
    this.file = file;
    this.location = location;
    this.root = VectorSchemaRoot.create(SparkVersions.arrowSchema(rules.schema), allocator);
    this.writer = ArrowWriter.create(root);
    python.ask("open", file, location, new byte[0]);
  }

  public void write(InternalRow row) throws IOException {
    writer.write(row);
    rows++;
    if (++waiting == BATCH_ROWS) {
      flush();
    }
  }

  private void flush() throws IOException {
    if (waiting == 0) {
      return;
    }
    writer.finish();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    ArrowStreamWriter stream = new ArrowStreamWriter(root, null, bytes);
    stream.start();
    stream.writeBatch();
    stream.end();
    writer.reset();
    waiting = 0;
    size = python.ask("write", file, bytes.toByteArray()).get("size").asLong();
  }

  public long size() {
    return size;
  }

  public WrittenFile close(PartitionKey partition) throws IOException {
    flush();
    JsonNode closed = python.ask("close", file, new byte[0]);
    release();
    return WrittenFile.described(
        location, closed.get("size").asLong(), rows, partition,
        Base64.getDecoder().decode(closed.get("data_file").asText()));
  }

  public void abandon() {
    release();
    try {
      python.ask("abandon", file, new byte[0]);
    } catch (IOException e) {
      // The process has ended, and with it what it wrote: a file appears when it is closed.
    }
  }

  private void release() {
    root.close();
    allocator.close();
  }
}
