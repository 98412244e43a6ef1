package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.partitions.PartitionKey;
import hms_iceberg.bridge.partitions.PartitionValues;
import hms_iceberg.bridge.wire.Json;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.Base64;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.slf4j.LoggerFactory;

/** A file that a task wrote, as it is told to the driver and to Python. */
public final class WrittenFile implements Serializable {
  public final String location;
  public final long size;
  public final long rows;
  private final int specId;
  private final String partition;
  private final String format;
  private final String columns;
  /** Where an ORC file can be split. */
  private final long[] splits;
  /** The places of leaves of shredded variants of which some value is NaN. */
  private final String nanLeaves;
  /** The footer of a Parquet file, deflated: of wide tables it is large, and the driver gets all of them. */
  private final byte[] footer;
  /** The key of an encrypted file, as manifests have it. */
  private final byte[] key;
  /** Python's own description of a file that it wrote. */
  private final byte[] described;

  private WrittenFile(
      String location, String format, long size, long rows, PartitionKey partition, String columns, long[] splits,
      String nanLeaves, byte[] footer, byte[] key, byte[] described) {
    this.location = location;
    this.format = format;
    this.size = size;
    this.rows = rows;
    this.specId = partition.specId;
    this.partition = PartitionValues.json(partition);
    this.columns = columns;
    this.splits = splits;
    this.nanLeaves = nanLeaves;
    this.footer = footer;
    this.key = key;
    this.described = described;
  }

  public static WrittenFile parquet(
      String location, long size, long rows, PartitionKey partition, RowMetrics metrics, String nanLeaves, byte[] footer,
      byte[] key) {
    return new WrittenFile(
        location, "parquet", size, rows, partition, metrics.json(), new long[0], nanLeaves, footer, key, null);
  }

  /** An ORC or Avro file. */
  public static WrittenFile counted(
      String location, String format, long size, long rows, PartitionKey partition, RowMetrics metrics, long[] splits,
      byte[] key) {
    return new WrittenFile(location, format, size, rows, partition, metrics.json(), splits, "[]", null, key, null);
  }

  public static WrittenFile described(String location, long size, long rows, PartitionKey partition, byte[] described) {
    return new WrittenFile(location, "", size, rows, partition, "{}", new long[0], "[]", null, null, described);
  }

  public static byte[] deflated(ByteArrayOutputStream bytes) throws IOException {
    ByteArrayOutputStream small = new ByteArrayOutputStream();
    DeflaterOutputStream deflater = new DeflaterOutputStream(small, new Deflater(Deflater.BEST_SPEED));
    bytes.writeTo(deflater);
    deflater.close();
    return small.toByteArray();
  }

  public ObjectNode json() {
    ObjectNode file = Json.MAPPER.createObjectNode();
    file.put("path", location);
    file.put("size", size);
    file.put("spec_id", specId);
    file.set("partition", Json.read(partition));
    file.put("format", format);
    file.put("rows", rows);
    file.set("columns", Json.read(columns));
    file.set("splits", Json.MAPPER.valueToTree(splits));
    file.set("nan_leaves", Json.read(nanLeaves));
    file.put("footer", text(footer));
    file.put("key", text(key));
    file.put("described", text(described));
    return file;
  }

  private static String text(byte[] bytes) {
    return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
  }

  /** Deletes a file that was not finished. */
  public static void abandon(Closeable stream, String location, Configuration conf) {
    try {
      stream.close();
    } catch (IOException e) {
      // It goes.
    } finally {
      delete(location, conf);
    }
  }

  /** Deletes a file that is part of no table. One that stays does no harm: the table does not know it. */
  public static void delete(String location, Configuration conf) {
    try {
      Path path = new Path(location);
      path.getFileSystem(conf).delete(path, false);
    } catch (Exception e) {
      LoggerFactory.getLogger(WrittenFile.class).warn("Could not delete the unused file " + location, e);
    }
  }
}
