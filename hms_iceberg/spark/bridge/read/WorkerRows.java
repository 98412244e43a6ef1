package hms_iceberg.bridge.read;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import scala.collection.Iterator;

/** Rows that a Python worker makes: a partition of a plan that Spark made of functions in Python. */
public final class WorkerRows implements InputPartition {
  private final RDD rows;
  private final Partition partition;

  private WorkerRows(RDD rows, Partition partition) {
    this.rows = rows;
    this.partition = partition;
  }

  /** All partitions of the rows. */
  public static InputPartition[] of(RDD rows) {
    Partition[] partitions = rows.partitions();
    InputPartition[] all = new InputPartition[partitions.length];
    for (int i = 0; i < all.length; i++) {
      all[i] = new WorkerRows(rows, partitions[i]);
    }
    return all;
  }

  public String[] preferredLocations() {
    return new String[0];
  }

  PartitionReader reader() {
    return new Reader(rows.iterator(partition, TaskContext.get()));
  }

  static final class Reader implements PartitionReader {
    private final Iterator rows;

    Reader(Iterator rows) {
      this.rows = rows;
    }

    public boolean next() {
      return rows.hasNext();
    }

    public Object get() {
      return rows.next();
    }

    public void close() {}
  }
}
