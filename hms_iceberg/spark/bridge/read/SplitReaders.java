package hms_iceberg.bridge.read;

import java.io.Serializable;
import org.apache.spark.rdd.InputFileBlockHolder$;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Runs on executors: reads the splits of a partition one after the other. */
public final class SplitReaders implements PartitionReaderFactory, Serializable {
  private final FileReader files;

  public SplitReaders(FileReader files) {
    this.files = files;
  }

  public PartitionReader createReader(InputPartition partition) {
    if (partition instanceof WorkerRows) {
      return ((WorkerRows) partition).reader();
    }
    return new Splits(files, ((FilePartition) partition).files());
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return createReader(partition);
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return files.returnsBatches();
  }

  static final class Splits implements PartitionReader {
    private final FileReader files;
    private final PartitionedFile[] splits;
    private int opened;
    private Rows rows;

    Splits(FileReader files, PartitionedFile[] splits) {
      this.files = files;
      this.splits = splits;
    }

    public boolean next() {
      while (rows == null || !rows.hasNext()) {
        if (opened == splits.length) {
          return false;
        }
        PartitionedFile split = splits[opened++];
        InputFileBlockHolder$.MODULE$.set(split.urlEncodedPath(), split.start(), split.length());
        rows = files.read(split);
      }
      return true;
    }

    public Object get() {
      return rows.next();
    }

    public void close() {
      InputFileBlockHolder$.MODULE$.unset();
      if (rows != null) {
        rows.close();
      }
    }
  }
}
