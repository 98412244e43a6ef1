package hms_iceberg.bridge.scan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Files in parts of at most so many bytes, packed into Spark's partitions as Spark packs those of its own tables.
 * A driver may hold a million of them: each is two numbers here, and becomes an object of Spark's when it is sent to
 * its task.
 */
final class PackedSplits {
  private final ScanFiles files;
  /** The columns that tasks take from partitions. */
  private final StructType columns;
  private final long longest;
  private final long most;
  private final SQLConf conf;
  private final int[] numbers;
  /** Which part of its file each is. */
  private final int[] partOf;

  /**
   * @param files those of a scan
   * @param wanted the numbers of those that are read
   * @param longest how many bytes a part has at most
   * @param most how many bytes a partition has at most, if no part is longer
   */
  PackedSplits(ScanFiles files, StructType columns, int[] wanted, long longest, long most, SQLConf conf) {
    this.files = files;
    this.columns = columns;
    this.longest = longest;
    this.most = most;
    this.conf = conf;
    int count = 0;
    for (int i = 0; i < wanted.length; i++) {
      count += partsOf(wanted[i]);
    }
    this.numbers = new int[count];
    this.partOf = new int[count];
    cut(wanted);
    sort();
  }

  private int partsOf(int file) {
    long size = files.size(file);
    return (int) (size / longest + (size % longest == 0 ? 0 : 1));
  }

  private void cut(int[] wanted) {
    int next = 0;
    for (int i = 0; i < wanted.length; i++) {
      int count = partsOf(wanted[i]);
      for (int part = 0; part < count; part++) {
        numbers[next] = wanted[i];
        partOf[next++] = part;
      }
    }
  }

  private long start(int split) {
    return partOf[split] * longest;
  }

  private long length(int split) {
    return Math.min(longest, files.size(numbers[split]) - start(split));
  }

  /** The longest come first, so that the short ones fill what is left. */
  private void sort() {
    Integer[] order = new Integer[numbers.length];
    for (int i = 0; i < order.length; i++) {
      order[i] = Integer.valueOf(i);
    }
    Arrays.sort(order, new LongestFirst(this));
    int[] sortedNumbers = new int[order.length];
    int[] sortedParts = new int[order.length];
    for (int i = 0; i < order.length; i++) {
      sortedNumbers[i] = numbers[order[i].intValue()];
      sortedParts[i] = partOf[order[i].intValue()];
    }
    System.arraycopy(sortedNumbers, 0, numbers, 0, order.length);
    System.arraycopy(sortedParts, 0, partOf, 0, order.length);
  }

  /** Spark's partitions, as few as the session wants. */
  List partitions() {
    List packed = packed(most, null);
    Option bound = conf.filesMaxPartitionNum();
    if (!bound.isDefined() || packed.size() <= ((Integer) bound.get()).intValue()) {
      return packed;
    }
    double total = 0;
    for (int i = 0; i < numbers.length; i++) {
      total += length(i) + conf.filesOpenCostInBytes();
    }
    return packed((long) Math.ceil(total / ((Integer) bound.get()).intValue()), null);
  }

  /** Those of rows that all have the same values of what the scan is grouped by. */
  List keyed(InternalRow key) {
    return packed(most, key);
  }

  private List packed(long most, InternalRow key) {
    long open = conf.filesOpenCostInBytes();
    List packed = new ArrayList();
    int from = 0;
    long size = 0;
    for (int i = 0; i < numbers.length; i++) {
      if (i > from && size + length(i) > most) {
        packed.add(partition(from, i, key));
        from = i;
        size = 0;
      }
      size += length(i) + open;
    }
    if (numbers.length > from) {
      packed.add(partition(from, numbers.length, key));
    }
    return packed;
  }

  private InputPartition partition(int from, int until, InternalRow key) {
    return key == null ? new Packed(this, from, until) : new Keyed(this, from, until, key);
  }

  private FilePartition ofSpark(int from, int until) {
    PartitionedFile[] parts = new PartitionedFile[until - from];
    for (int i = 0; i < parts.length; i++) {
      int split = from + i;
      parts[i] = files.split(numbers[split], columns, start(split), length(split));
    }
    return new FilePartition(from, parts);
  }

  /** Some of the splits; tasks get them as Spark's own kind of partition. */
  static class Packed implements InputPartition {
    private final PackedSplits splits;
    private final int from;
    private final int until;

    Packed(PackedSplits splits, int from, int until) {
      this.splits = splits;
      this.from = from;
      this.until = until;
    }

    public String[] preferredLocations() {
      return new String[0];
    }

    protected Object writeReplace() {
      return splits.ofSpark(from, until);
    }
  }

  /** Those whose rows all have the same values of what the scan is grouped by. */
  static final class Keyed extends Packed implements HasPartitionKey {
    private final InternalRow key;

    Keyed(PackedSplits splits, int from, int until, InternalRow key) {
      super(splits, from, until);
      this.key = key;
    }

    public InternalRow partitionKey() {
      return key;
    }
  }

  static final class LongestFirst implements Comparator {
    private final PackedSplits splits;

    LongestFirst(PackedSplits splits) {
      this.splits = splits;
    }

    public int compare(Object left, Object right) {
      return Long.compare(splits.length(((Integer) right).intValue()), splits.length(((Integer) left).intValue()));
    }
  }
}
