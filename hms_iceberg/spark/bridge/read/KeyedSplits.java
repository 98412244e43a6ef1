package hms_iceberg.bridge.read;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition;

/** Splits of files whose rows all have the same values of what the scan is grouped by. */
public final class KeyedSplits implements InputPartition, HasPartitionKey {
  public final FilePartition splits;
  private final InternalRow key;

  public KeyedSplits(FilePartition splits, InternalRow key) {
    this.splits = splits;
    this.key = key;
  }

  public static FilePartition splits(InputPartition partition) {
    return partition instanceof KeyedSplits ? ((KeyedSplits) partition).splits : (FilePartition) partition;
  }

  public InternalRow partitionKey() {
    return key;
  }

  public String[] preferredLocations() {
    return splits.preferredLocations();
  }
}
