package hms_iceberg.bridge.read;

import java.io.Serializable;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Runs on executors: reads splits of files, and rows that came as Arrow. */
public final class ChangesReaders implements PartitionReaderFactory, Serializable {
  private final ArrowPartition.Readers arrow = new ArrowPartition.Readers();
  private final SplitReaders splits;
  private final boolean inBatches;

  public ChangesReaders(FileReader files) {
    this.splits = new SplitReaders(files);
    this.inBatches = files.returnsBatches();
  }

  public PartitionReader createReader(InputPartition partition) {
    return partition instanceof ArrowPartition ? arrow.createReader(partition) : splits.createReader(partition);
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return partition instanceof ArrowPartition
        ? arrow.createColumnarReader(partition) : splits.createColumnarReader(partition);
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return inBatches;
  }
}
