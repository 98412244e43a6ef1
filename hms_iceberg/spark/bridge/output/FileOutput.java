package hms_iceberg.bridge.output;

import hms_iceberg.bridge.partitions.PartitionKey;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;

/** One file that is being written. */
public interface FileOutput {
  void write(InternalRow row) throws IOException;

  /** The bytes of the file if it ended here, about. */
  long size();

  /** Finishes the file. */
  WrittenFile close(PartitionKey partition) throws IOException;

  /** Gives the file up; nothing of it stays. */
  void abandon();
}
