package hms_iceberg.bridge.stream;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$;

/**
 * Where a stream began, in its checkpoint, which has no offset of that: a batch is only logged by its end. The file is
 * Apache Iceberg's, so that either goes on with the other's checkpoints.
 */
public final class StreamStart {
  private final Path checkpoint;
  private final Path folder;
  private final Configuration conf;

  public StreamStart(String folder, Configuration conf) {
    this.checkpoint = new Path(folder).getParent().getParent();
    this.folder = new Path(folder, "offsets");
    this.conf = conf;
  }

  private Path file() {
    return new Path(folder, "0");
  }

  private CheckpointFileManager files() {
    return CheckpointFileManager$.MODULE$.create(folder, conf);
  }

  /** Null if the stream has not begun, or began with an earlier version of ours. */
  public JsonNode known() {
    CheckpointFileManager files = files();
    if (!files.exists(file())) {
      return null;
    }
    try {
      InputStream in = files.open(file());
      try {
        JsonNode offset = Json.MAPPER.readTree(in);
        if (offset == null || !offset.isObject()) {
          throw new IOException("it holds no offset");
        }
        return offset;
      } finally {
        in.close();
      }
    } catch (IOException e) {
      throw failure("read", e);
    }
  }

  /** Whether the query has begun a batch without a start that was kept: so did an earlier version of ours. */
  boolean isOfEarlierVersion() {
    return CheckpointFileManager$.MODULE$.create(checkpoint, conf).exists(new Path(checkpoint, "offsets/0"));
  }

  /** The file is there as a whole or not at all; another query that was first has decided. */
  public JsonNode store(JsonNode offset) {
    CheckpointFileManager files = files();
    files.mkdirs(folder);
    try {
      CheckpointFileManager.CancellableFSDataOutputStream out = files.createAtomic(file(), false);
      boolean written = false;
      try {
        out.write(offset.toString().getBytes(StandardCharsets.UTF_8));
        written = true;
      } finally {
        if (written) {
          out.close();
        } else {
          out.cancel();
        }
      }
    } catch (FileAlreadyExistsException e) {
      return known();
    } catch (IOException e) {
      throw failure("write", e);
    }
    return offset;
  }

  private RuntimeException failure(String what, IOException cause) {
    return Failures.of("StorageError: cannot " + what + " where the stream began, in " + file() + " of its checkpoint: "
        + cause.getMessage() + ". Start the stream again when the checkpoint can be used, or with a new checkpoint if the"
        + " file is damaged.", cause);
  }
}
