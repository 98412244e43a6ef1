package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.conditions.PartitionFilter;
import hms_iceberg.bridge.files.DeleteRun;
import hms_iceberg.bridge.files.FileTask;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.SentOnce;
import hms_iceberg.bridge.wire.Texts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** The files of one planned scan. */
public final class ScanFiles implements Cloneable {
  private static final DeleteRun[] NO_RUNS = new DeleteRun[0];
  private static final SentOnce[] NO_GROUPS = new SentOnce[0];

  private final JsonNode header;
  private final StructType partitionSchema;
  private final InternalRow[] partitions;
  private final Map[] constants;
  private final JsonNode[] partitionValues;
  private final Texts paths;
  private final long[] sizes;
  private final String[] formats;
  /** Which of the formats each file has; null if there is but one. */
  private final int[] formatOf;
  private final int[] partitionOf;
  private final long[] sequenceNumbers;
  private final long[] firstRowIds;
  /** How many rows each file has, deleted ones among them; null if nobody asked. */
  private final long[] rowCounts;
  private final int[] specIds;
  /** What each file is encrypted by, empty for one that is not; null if none is. */
  private final byte[][] keys;
  /** Null if there are none. */
  private final PlannedDeletes deletes;
  private final long totalSize;
  private final WorkerFiles workerFiles;
  private long planningNanos;
  private PlannedPartitions planned;

  ScanFiles(Answer plan) {
    this.header = plan.header();
    int count = header.get("files").asInt();
    this.paths = plan.takeTexts(count);
    this.sizes = plan.takeLongs(count);
    this.sequenceNumbers = plan.takeLongs(count);
    this.firstRowIds = plan.takeLongs(count);
    this.rowCounts = header.get("row_counts").asBoolean() ? plan.takeLongs(count) : null;
    this.partitionOf = plan.takeInts(count);
    this.formats = Json.texts(header.get("formats"));
    this.formatOf = formats.length < 2 ? null : plan.takeInts(count);
    this.keys = header.get("keyed").asBoolean() ? plan.takeBlobs(count) : null;
    this.partitionSchema = UnsupportedTypes.parse(header.get("partition_schema"));
    JsonNode tuples = header.get("partitions");
    this.partitions = new InternalRow[tuples.size()];
    this.constants = new Map[tuples.size()];
    this.partitionValues = new JsonNode[tuples.size()];
    this.specIds = new int[tuples.size()];
    for (int i = 0; i < partitions.length; i++) {
      JsonNode tuple = Json.at(tuples, i);
      specIds[i] = tuple.get("spec_id").asInt();
      partitions[i] = row(tuple.get("values"));
      constants[i] = constants(tuple.get("constants"));
      partitionValues[i] = tuple.get("partition");
    }
    this.deletes = header.get("delete_files").asInt() == 0 ? null : new PlannedDeletes(plan, count);
    int others = header.get("worker_files").asInt();
    this.workerFiles = others == 0 ? null : new WorkerFiles(others, plan, marksDeleted());
    long total = 0;
    for (int i = 0; i < count; i++) {
      total += sizes[i];
    }
    this.totalSize = total;
  }

  private InternalRow row(JsonNode values) {
    StructField[] fields = partitionSchema.fields();
    Object[] row = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      row[i] = UnsupportedTypes.value(fields[i], Json.at(values, i));
    }
    return new GenericInternalRow(row);
  }

  /** Identity values by field id; each is [Spark's type, value]. */
  private static Map constants(JsonNode values) {
    Map byId = new HashMap();
    for (Iterator it = values.fields(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      JsonNode typed = (JsonNode) entry.getValue();
      byId.put(Integer.valueOf((String) entry.getKey()),
          UnsupportedTypes.value(Json.at(typed, 0), Json.at(typed, 1)));
    }
    return byId;
  }

  /** The table's name mapping as JSON text, or null if it has none. */
  public String nameMapping() {
    JsonNode mapping = header.get("name_mapping");
    return mapping == null || mapping.isNull() ? null : mapping.toString();
  }

  /** The files that only Python reads, and that are not among the others here; null if there are none. */
  public WorkerFiles workerFiles() {
    return workerFiles;
  }

  public boolean isEmpty() {
    return paths.size() == 0;
  }

  /** The answers to the aggregates that were asked for, if metadata alone knows them all; else null. */
  public JsonNode aggregates() {
    JsonNode answers = header.get("aggregates");
    return answers == null || answers.isNull() ? null : answers;
  }

  /** What is known of columns, by their names. */
  public JsonNode statistics() {
    return header.get("statistics");
  }

  /** Whether deleted rows are among those that are read, and marked, because the query uses the column _deleted. */
  public boolean marksDeleted() {
    return header.get("deleted_column").asBoolean();
  }

  public StructType partitionSchema() {
    return partitionSchema;
  }

  public long sizeInBytes() {
    return totalSize + workerBytes();
  }

  long workerBytes() {
    return workerFiles == null ? 0 : workerFiles.bytes();
  }

  /** How many rows the files have, deleted ones among them. */
  public long rowCount() {
    return header.get("rows").asLong();
  }

  /** By what the files are partitioned. */
  synchronized PlannedPartitions plannedPartitions() {
    if (planned == null) {
      planned = new PlannedPartitions(header.get("specs"), header.get("partitions"));
    }
    return planned;
  }

  /** Which partitions conditions keep that name no other columns than the partitions'. */
  boolean[] keptBy(Seq conditions) {
    return PartitionFilter.keep(conditions, partitionSchema, partitions);
  }

  /** The numbers of the files in some partitions, of which some have one of some paths unless that is null. */
  public int[] numbers(boolean[] kept, Set named) {
    int[] numbers = new int[paths.size()];
    int count = 0;
    for (int i = 0; i < paths.size(); i++) {
      if (kept[partitionOf[i]] && (named == null || named.contains(paths.text(i)))) {
        numbers[count++] = i;
      }
    }
    return Arrays.copyOf(numbers, count);
  }

  /** As many of the files as have so many rows, of which none is deleted; all if there are not so many. */
  int[] enough(int[] numbers, long rows) {
    int[] enough = new int[numbers.length];
    int count = 0;
    long left = rows;
    for (int i = 0; i < numbers.length && left > 0; i++) {
      int number = numbers[i];
      if (deletes == null || !deletes.has(number)) {
        enough[count++] = number;
        left -= rowCounts[number];
      }
    }
    return left > 0 ? numbers : Arrays.copyOf(enough, count);
  }

  public long bytes(int[] numbers) {
    long total = 0;
    for (int i = 0; i < numbers.length; i++) {
      total += sizes[numbers[i]];
    }
    return total;
  }

  public int partition(int number) {
    return partitionOf[number];
  }

  int count() {
    return paths.size();
  }

  long size(int number) {
    return sizes[number];
  }

  /** Is to be called before files are split: what many splits have in common is sent to executors. */
  void send(SparkContext context) {
    if (deletes != null) {
      deletes.send(context);
    }
  }

  /** A part of a file, with the values of some partition columns. */
  PartitionedFile split(int number, StructType columns, long start, long length) {
    return new PartitionedFile(
        projected(partitions[partitionOf[number]], columns), SparkPath.fromPath(new Path(paths.text(number))), start,
        length, new String[0], 0L, sizes[number], told(number));
  }

  private InternalRow projected(InternalRow partition, StructType columns) {
    StructField[] fields = columns.fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < values.length; i++) {
      int place = partitionSchema.fieldIndex(fields[i].name());
      values[i] = partition.isNullAt(place) ? null : partition.get(place, partitionSchema.fields()[place].dataType());
    }
    return new GenericInternalRow(values);
  }

  long planningNanos() {
    return planningNanos;
  }

  /** What travels with a file's splits. */
  private scala.collection.immutable.Map told(int i) {
    int partition = partitionOf[i];
    FileTask task = new FileTask(
        paths.text(i), formats[formatOf == null ? 0 : formatOf[i]], specIds[partition], sequenceNumbers[i],
        firstRowIds[i], constants[partition],
        partitionValues[partition] == null ? null : partitionValues[partition].toString(),
        deletes == null ? NO_RUNS : deletes.positions(i), deletes == null ? NO_GROUPS : deletes.groups(i),
        keys == null || keys[i].length == 0 ? null : keys[i]);
    return (scala.collection.immutable.Map) Map$.MODULE$.empty().updated(FileTask.KEY, task);
  }

  /** What is read and how it was planned, for EXPLAIN and the user interface. */
  public String description() {
    return header.get("description").asText();
  }

  /** The paths of all files, also of those that Python reads. */
  public List paths() {
    List all = new ArrayList(paths);
    if (workerFiles != null) {
      all.addAll(workerFiles.paths());
    }
    return all;
  }

  /** The same files for another query, which got them in so much time. */
  ScanFiles plannedIn(long nanos) {
    try {
      ScanFiles own = (ScanFiles) clone();
      own.planningNanos = nanos;
      return own;
    } catch (CloneNotSupportedException e) {
      throw new IllegalStateException(e);
    }
  }

  public String toString() {
    return description();
  }
}
