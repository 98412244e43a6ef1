package hms_iceberg.bridge.scan;

import hms_iceberg.bridge.read.FileReader;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** The files of a scan, without those of which the conditions leave out the whole partition. */
final class PlannedScan {
  public final ScanFiles files;
  public final long bytes;
  private final boolean[] kept;
  private final boolean wholeFiles;

  /**
   * Conditions on columns that all files are partitioned by are tested here and nowhere else.
   *
   * @param wholeFiles whether files are not split
   */
  PlannedScan(ScanFiles files, List conditions, List identityColumns, boolean wholeFiles) {
    if (!files.isEmpty() && !Arrays.asList(files.partitionSchema().fieldNames()).containsAll(identityColumns)) {
      throw new IllegalStateException("Not all files are partitioned by " + identityColumns + ".");
    }
    this.files = files;
    this.wholeFiles = wholeFiles;
    List names = Arrays.asList(files.partitionSchema().fieldNames());
    this.kept = files.keptBy(CollectionTools.seq(ScanQuestion.on(conditions, names)));
    this.bytes = files.bytes(files.numbers(kept, null)) + files.workerBytes();
  }

  boolean keepsSame(PlannedScan other) {
    return Arrays.equals(kept, other.kept);
  }

  /** About how many rows there are, deleted ones among them. */
  public long rows() {
    long all = files.sizeInBytes();
    return all == bytes ? files.rowCount() : (long) (files.rowCount() * ((double) bytes / all));
  }

  /** Where each of the wanted columns comes from: from files, or from their partition. */
  public FileReader.Wanted columns(StructType wanted) {
    return FileReader.Wanted.of(wanted, files.partitionSchema());
  }

  /**
   * The numbers of the files that are left when a query has learnt of values.
   *
   * @param named the paths of those that are read at all; null for all
   */
  public int[] numbers(RuntimeFilters learnt, Set named) {
    return files.numbers(learnt.keep(files.plannedPartitions(), kept), named == null ? learnt.files() : named);
  }

  /** Splits of files, packed as Spark packs those of its own tables. */
  public InputPartition[] partitions(SparkSession session, StructType wanted, int[] numbers) {
    List packed = splits(session, wanted, numbers, maxSplitBytes(session, numbers)).partitions();
    return (InputPartition[]) packed.toArray(new InputPartition[0]);
  }

  /**
   * The same, but what is in one partition has the same values of what the files are grouped by. Fewer files never make
   * more partitions of such values, which Spark would refuse when a query has learnt of values: what a partition holds
   * at most is told by all files, and not by those that are left.
   */
  InputPartition[] keyed(SparkSession session, StructType wanted, int[] numbers) {
    InternalRow[] keys = files.plannedPartitions().keyValues(wanted);
    Map groups = new LinkedHashMap();
    for (int i = 0; i < numbers.length; i++) {
      InternalRow key = keys[files.partition(numbers[i])];
      List group = (List) groups.get(key);
      if (group == null) {
        group = new ArrayList();
        groups.put(key, group);
      }
      group.add(Integer.valueOf(numbers[i]));
    }
    long most = maxSplitBytes(session, files.numbers(kept, null));
    List partitions = new ArrayList();
    for (Iterator it = groups.entrySet().iterator(); it.hasNext();) {
      Map.Entry group = (Map.Entry) it.next();
      PackedSplits splits = splits(session, wanted, numbers((List) group.getValue()), most);
      partitions.addAll(splits.keyed((InternalRow) group.getKey()));
    }
    return (InputPartition[]) partitions.toArray(new InputPartition[0]);
  }

  private static int[] numbers(List boxed) {
    int[] numbers = new int[boxed.size()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = ((Integer) boxed.get(i)).intValue();
    }
    return numbers;
  }

  /** By what the files are grouped, and in how many groups. */
  public Partitioning partitioning(StructType read) {
    org.apache.spark.sql.connector.expressions.Expression[] keys = files.plannedPartitions().keys(read);
    if (keys.length == 0 || files.workerFiles() != null) {
      return new UnknownPartitioning(0);
    }
    InternalRow[] values = files.plannedPartitions().keyValues(read);
    Set distinct = new HashSet();
    for (int i = 0; i < values.length; i++) {
      if (kept[i]) {
        distinct.add(values[i]);
      }
    }
    return new KeyGroupedPartitioning(keys, distinct.size());
  }

  private PackedSplits splits(SparkSession session, StructType wanted, int[] numbers, long most) {
    StructType partition = FileReader.Wanted.of(wanted, files.partitionSchema()).partition;
    files.send(session.sparkContext());
    SQLConf conf = session.sessionState().conf();
    return new PackedSplits(files, partition, numbers, wholeFiles ? Long.MAX_VALUE : most, most, conf);
  }

  private long maxSplitBytes(SparkSession session, int[] numbers) {
    return maxSplitBytes(session, files.bytes(numbers), numbers.length);
  }

  /** How large a split is of so many bytes in so many files. */
  static long maxSplitBytes(SparkSession session, long bytes, int count) {
    SQLConf conf = session.sessionState().conf();
    long open = conf.filesOpenCostInBytes();
    Option least = conf.filesMinPartitionNum();
    int slots = least.isDefined() ? ((Integer) least.get()).intValue() : session.leafNodeDefaultParallelism();
    long perSlot = (bytes + count * open) / slots;
    return Math.min(conf.filesMaxPartitionBytes(), Math.max(open, perSlot));
  }

  public CustomTaskMetric[] metrics(int[] numbers) {
    return ScanMetrics.of(numbers.length, files.bytes(numbers), files.planningNanos() / 1000000);
  }
}
