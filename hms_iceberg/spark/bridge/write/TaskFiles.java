package hms_iceberg.bridge.write;

import hms_iceberg.bridge.avro.AvroOutput;
import hms_iceberg.bridge.orc.OrcOutput;
import hms_iceberg.bridge.output.FileOutput;
import hms_iceberg.bridge.output.PythonWriter;
import hms_iceberg.bridge.output.StorageDenied;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.output.WrittenFile;
import hms_iceberg.bridge.parquet.ParquetOutput;
import hms_iceberg.bridge.partitions.PartitionKey;
import hms_iceberg.bridge.partitions.PartitionValues;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.OutputMetrics;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The files of one kind that a task writes: a row goes to the file of its partition, and a file that has reached its size
 * is followed by another one. What the rows are (data, position deletes) is in the rules; a row comes with its partition,
 * or gets the one that the rules make of it. A file is made at its first row.
 */
public final class TaskFiles implements TaskCompletionListener {
  private static final int ROWS_BETWEEN_CHECKS = 1000;

  private final WriteRules rules;
  private final Configuration conf;
  private final CollectionAccumulator told;
  private final PartitionValues partitions;
  private final int partitionId;
  private final long taskId;
  private final long epoch;
  private final TaskContext task = TaskContext.get();
  private final Map open = new HashMap();
  private final Set finished = new HashSet();
  private final List written = new ArrayList();
  private Lane current;
  private int count;
  private PythonWriter python;

  TaskFiles(
      WriteRules rules, Configuration conf, CollectionAccumulator told, int partitionId, long taskId, long epoch) {
    this.rules = rules;
    this.conf = conf;
    this.told = told;
    this.partitions = rules.spec(rules.specId);
    this.partitionId = partitionId;
    this.taskId = taskId;
    this.epoch = epoch;
    if (task != null) {
      task.addTaskCompletionListener(this);
    }
  }

  /** A task that is killed while it ends fails after all, and nobody hears of its files. Its input may have ended early. */
  public void onTaskCompletion(TaskContext ended) {
    if (ended.isInterrupted()) {
      abort();
    }
  }

  /** Writes a row into its partition of the rules' own spec. */
  public void write(InternalRow row) throws IOException {
    write(row, partitions.of(row));
  }

  /** Writes a row into a given partition, of any spec that the rules have. */
  public void write(InternalRow row, PartitionKey partition) throws IOException {
    endIfKilled();
    if (current == null || !current.partition.equals(partition)) {
      current = lane(partition);
    }
    current.write(row);
  }

  private FileOutput open(String location) throws IOException {
    if (rules.python != null) {
      if (python == null) {
        python = PythonWriter.begun(rules.python);
      }
      return new PythonOutput(python, rules, count, location);
    }
    if ("orc".equals(rules.format)) {
      return new OrcOutput(rules, conf, location);
    }
    return "avro".equals(rules.format) ? (FileOutput) new AvroOutput(rules, conf, location)
        : new ParquetOutput(rules, conf, location);
  }

  /** A task may be interrupted when the file is there already, and the output is not. */
  private FileOutput opened(String location) throws IOException {
    boolean done = false;
    try {
      FileOutput output = open(location);
      done = true;
      return output;
    } finally {
      if (!done) {
        WrittenFile.delete(location, conf);
      }
    }
  }

  private Lane lane(PartitionKey partition) throws IOException {
    if (current != null && !rules.fanout && !current.partition.isAmong(partition)) {
      for (Iterator it = open.values().iterator(); it.hasNext();) {
        Lane done = (Lane) it.next();
        done.finish();
        finished.add(done.partition);
      }
      open.clear();
    }
    Lane lane = (Lane) open.get(partition);
    if (lane == null) {
      PartitionKey own = partition.copy();
      if (finished.contains(own)) {
        throw new IllegalStateException("InvalidInputError: the rows of partition "
            + rules.spec(own.specId).folder(own) + " do not follow one another, and files of partitions are written one"
            + " after the other. Sort the rows by the table's partitions, or set the option fanout-enabled=true.");
      }
      lane = new Lane(own);
      open.put(own, lane);
    }
    return lane;
  }

  /** Finishes all files; nothing can be written after that. */
  public List finish() throws IOException {
    for (Iterator it = open.values().iterator(); it.hasNext();) {
      ((Lane) it.next()).finish();
    }
    open.clear();
    current = null;
    for (int i = 0; i < written.size(); i++) {
      told.add(((WrittenFile) written.get(i)).location);
    }
    return new ArrayList(written);
  }

  /** Spark looks only now and then. */
  private void endIfKilled() {
    if (task != null && task.isInterrupted()) {
      task.killTaskIfInterrupted();
    }
  }

  /** Deletes all files, finished ones too. */
  public void abort() {
    for (Iterator it = open.values().iterator(); it.hasNext();) {
      ((Lane) it.next()).abandon();
    }
    open.clear();
    current = null;
    for (int i = 0; i < written.size(); i++) {
      WrittenFile.delete(((WrittenFile) written.get(i)).location, conf);
    }
    written.clear();
  }

  /** Ends what is kept for all files; a task calls this last, whatever became of it. */
  public void close() {
    if (python != null) {
      python.close();
      python = null;
    }
  }

  /** Tells Spark how much was written. */
  public static void report(List files) {
    TaskContext task = TaskContext.get();
    if (task == null) {
      return;
    }
    long bytes = 0;
    long rows = 0;
    for (int i = 0; i < files.size(); i++) {
      bytes += ((WrittenFile) files.get(i)).size;
      rows += ((WrittenFile) files.get(i)).rows;
    }
    OutputMetrics metrics = task.taskMetrics().outputMetrics();
    metrics.setBytesWritten(bytes);
    metrics.setRecordsWritten(rows);
  }

  /** The files of one partition, of which one is open. */
  final class Lane {
    public final PartitionKey partition;
    private FileOutput output;
    private int unchecked;

    Lane(PartitionKey partition) {
      this.partition = partition;
    }

    public void write(InternalRow row) throws IOException {
      if (output == null) {
        String folder = rules.spec(partition.specId).folder(partition);
        try {
          output = opened(rules.names.location(partitionId, taskId, epoch, ++count, folder));
        } catch (IOException e) {
          throw StorageDenied.told(e);
        }
      }
      output.write(row);
      if (++unchecked == ROWS_BETWEEN_CHECKS) {
        unchecked = 0;
        if (output.size() >= rules.targetSize) {
          finish();
        }
      }
    }

    public void finish() throws IOException {
      if (output != null) {
        try {
          written.add(output.close(partition)); // object stores get the file here
        } catch (IOException e) {
          throw StorageDenied.told(e);
        }
        output = null;
        unchecked = 0;
      }
    }

    public void abandon() {
      if (output != null) {
        output.abandon();
      }
    }
  }
}
