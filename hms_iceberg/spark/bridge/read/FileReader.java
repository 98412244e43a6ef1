package hms_iceberg.bridge.read;

import hms_iceberg.bridge.batches.BatchColumns;
import hms_iceberg.bridge.batches.DeletedMarks;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.batches.OpenFile;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.deletes.DeletedRows;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.EqualityDeletes;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.files.FileTask;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.wire.ExecutorConf;
import hms_iceberg.bridge.wire.Json;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;

/** Runs on the executors: reads one split of one data file as Iceberg says. */
public final class FileReader implements Serializable {
  private final ExecutorConf conf;
  private final Wanted wanted;
  private final String nameMapping;
  private final Filter[] filters;
  /** See VariantGroups. */
  private final String variantTests;
  private final boolean marksDeleted;
  private final ReadSettings settings;
  /** Of the task, which reads one file after the other: it is large, and many small files would copy it often. */
  private transient Configuration ofTask;

  public FileReader(
      ExecutorConf conf, Wanted wanted, String nameMapping, Filter[] filters, String variantTests, boolean marksDeleted,
      ReadSettings settings) {
    this.conf = conf;
    this.wanted = wanted;
    this.nameMapping = nameMapping;
    this.filters = filters;
    this.variantTests = variantTests;
    this.marksDeleted = marksDeleted;
    this.settings = settings;
  }

  boolean returnsBatches() {
    return settings.returnBatches;
  }

  Rows read(PartitionedFile file) {
    FileTask task = (FileTask) file.otherConstantMetadataColumnValues().apply(FileTask.KEY);
    FileBatches batches = null;
    try {
      FilePart part = new FilePart(
          "data file", task.format, file.toPath(), file.start(), file.length(), file.fileSize(), task.key);
      batches = OpenFile.batches(part, columns(file, task), own(conf.value()), settings);
      Rows rows = rows(batches, task);
      if (TaskContext.get() != null) {
        TaskContext.get().addTaskCompletionListener((TaskCompletionListener) new CloseAtEnd(rows));
      }
      return rows;
    } catch (Exception e) {
      closeQuietly(batches);
      org.apache.spark.unsafe.Platform.throwException(e);
      return null;
    }
  }

  /** A configuration to be changed; a file's filter stays in it. */
  private Configuration own(Configuration shared) {
    if (filters.length > 0) {
      return new Configuration(shared);
    }
    if (ofTask == null) {
      ofTask = new JobConf(shared); // Hadoop makes one of any other kind, for each file
    }
    return ofTask;
  }

  /** The wanted columns, and what deletes are compared by. */
  private ColumnsToRead columns(PartitionedFile file, FileTask task) {
    StructType all = wanted.ofFiles;
    EqualityDeletes[] groups = task.equalityDeletes();
    for (int i = 0; i < groups.length; i++) {
      all = Structs.merge(all, groups[i].columns);
    }
    boolean positions = task.positionDeletes.length > 0 || Structs.has(all, MetadataColumns.POSITION)
        || Structs.has(all, MetadataColumns.ROW_ID);
    return new ColumnsToRead(
        MetadataColumns.stored(all), positions, filters, variantTests, Json.read(nameMapping), task.constants,
        wanted.partition, file.partitionValues());
  }

  private Rows rows(FileBatches batches, FileTask task) throws Exception {
    DeletedMarks marks = marksDeleted ? new DeletedMarks() : null;
    BatchColumns batchColumns = new BatchColumns(batches, task, marks);
    DeletedRows deleted = DeletedRows.of(task, batchColumns, conf.value(), settings);
    return new Rows(batches, wanted.ordered(batchColumns.output(wanted.ofFiles)), deleted, marks, returnsBatches());
  }

  private static void closeQuietly(FileBatches batches) {
    try {
      if (batches != null) {
        batches.close();
      }
    } catch (IOException e) {
      return;
    }
  }

  /** The columns that are read of files, and those that come from their partition. */
  public static final class Wanted implements Serializable {
    public final StructType ofFiles;
    public final StructType partition;
    /** Of each column, its place among those of files and then of the partition; null if they come in that order. */
    private final int[] order;

    private Wanted(StructType ofFiles, StructType partition, int[] order) {
      this.ofFiles = ofFiles;
      this.partition = partition;
      this.order = order;
    }

    /** Columns in any order, of which some have the names of columns of the partition. */
    public static Wanted of(StructType all, StructType partition) {
      List inFiles = new ArrayList();
      List others = new ArrayList();
      for (int i = 0; i < all.fields().length; i++) {
        (Structs.has(partition, all.fields()[i].name()) ? others : inFiles).add(all.fields()[i]);
      }
      int[] order = new int[all.fields().length];
      for (int i = 0; i < order.length; i++) {
        int inFile = inFiles.indexOf(all.fields()[i]);
        order[i] = inFile >= 0 ? inFile : inFiles.size() + others.indexOf(all.fields()[i]);
      }
      StructField[] none = new StructField[0];
      return new Wanted(
          new StructType((StructField[]) inFiles.toArray(none)), new StructType((StructField[]) others.toArray(none)),
          others.isEmpty() ? null : order);
    }

    public ColumnarBatch ordered(ColumnarBatch batch) {
      if (order == null) {
        return batch;
      }
      ColumnVector[] vectors = new ColumnVector[order.length];
      for (int i = 0; i < order.length; i++) {
        vectors[i] = batch.column(order[i]);
      }
      return new ColumnarBatch(vectors);
    }
  }

  static final class CloseAtEnd implements TaskCompletionListener {
    private final Rows rows;

    CloseAtEnd(Rows rows) {
      this.rows = rows;
    }

    public void onTaskCompletion(TaskContext context) {
      rows.close();
    }
  }
}
