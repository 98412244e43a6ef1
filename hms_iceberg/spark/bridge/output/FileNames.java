package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/** Where new files go, and what they are called, as Iceberg Java lays them out. */
public final class FileNames implements Serializable {
  private static final int ENTROPY_BITS = 20;

  private final String folder;
  private final String context;
  private final boolean objectStorage;
  private final boolean partitionedPaths;
  private final String operation;
  private final String suffix;

  FileNames(JsonNode names, String operation) {
    this.folder = names.get("folder").asText();
    this.context = names.get("context").isNull() ? null : names.get("context").asText();
    this.objectStorage = names.get("object_storage").asBoolean();
    this.partitionedPaths = names.get("partitioned_paths").asBoolean();
    this.suffix = names.get("suffix").asText();
    this.operation = operation;
  }

  /**
   * The location of a task's next file. The id of the task's attempt is part of it, so that attempts never meet.
   *
   * @param partition such as a=1/b=x, escaped; empty if there are no partitions
   */
  public String location(int partitionId, long taskId, long epoch, int count, String partition) {
    String name = String.format(Locale.ROOT, "%05d-%d-%s-%d-%05d%s", new Object[] {
        Integer.valueOf(partitionId), Long.valueOf(taskId), operation, Long.valueOf(epoch), Integer.valueOf(count),
        suffix});
    if (!objectStorage) {
      return folder + "/" + (partition.isEmpty() ? "" : partition + "/") + name;
    }
    if (!partition.isEmpty() && partitionedPaths) {
      name = partition + "/" + name;
    }
    String entropy = entropy(name);
    if (context != null) {
      return folder + "/" + entropy + "/" + context + "/" + name;
    }
    return folder + "/" + entropy + (partitionedPaths ? "/" : "-") + name;
  }

  /** Twenty bits of the name's hash as folders of 4, 4, 4 and 8 digits, so that a store spreads its load. */
  private static String entropy(String name) {
    byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
    int hash = Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0);
    StringBuilder bits = new StringBuilder();
    for (int i = ENTROPY_BITS - 1; i >= 0; i--) {
      bits.append((hash >> i) & 1);
      int done = ENTROPY_BITS - i;
      if (done == 4 || done == 8 || done == 12) {
        bits.append('/');
      }
    }
    return bits.toString();
  }
}
