package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.runtime.AbstractFunction1;

/** Runs on the executors: reads one split of one data file as Iceberg says. */
final class FileReader extends AbstractFunction1 implements Serializable {
  /** Spark's reader fills a column of this name with the row's position in the file. */
  static final String POSITION = "_tmp_metadata_row_index";

  private final ExecutorConf conf;
  private final StructType wanted;
  private final StructType partitionSchema;
  private final String nameMapping;
  private final Filter[] filters;
  /** See VariantGroups. */
  private final String variantTests;
  private final boolean marksDeleted;
  private final ReadSettings settings;
  /** Of the task, which reads one file after the other: it is large, and many small files would copy it often. */
  private transient Configuration ofTask;
  /** The columns that were read of the file before, which are mostly those of the next, too. */
  private transient StructType lastRead;
  private transient String lastJson;

  FileReader(
      ExecutorConf conf, StructType wanted, StructType partitionSchema, String nameMapping, Filter[] filters,
      String variantTests, boolean marksDeleted, ReadSettings settings) {
    this.conf = conf;
    this.wanted = wanted;
    this.partitionSchema = partitionSchema;
    this.nameMapping = nameMapping;
    this.filters = filters;
    this.variantTests = variantTests;
    this.marksDeleted = marksDeleted;
    this.settings = settings;
  }

  public Object apply(Object split) {
    PartitionedFile file = (PartitionedFile) split;
    FileTask task = (FileTask) file.otherConstantMetadataColumnValues().apply(FileTask.KEY);
    Configuration hadoop = conf.value();
    ParquetFile parquet = null;
    try {
      parquet = new ParquetFile(
          own(hadoop), "data file", file.toPath(), file.start(), file.length(), task.key, settings);
      Rows rows = rows(parquet, file, task, hadoop);
      if (TaskContext.get() != null) {
        TaskContext.get().addTaskCompletionListener((TaskCompletionListener) new CloseAtEnd(rows));
      }
      return rows;
    } catch (Exception e) {
      closeQuietly(parquet);
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

  private Rows rows(ParquetFile parquet, PartitionedFile file, FileTask task, Configuration hadoop) throws Exception {
    boolean byId = parquet.hasFieldIds();
    JsonNode mapping = byId ? null : Json.read(nameMapping);
    if (!byId && mapping == null) {
      throw new IOException("The data file " + task.path + " has no field ids and its table has no name mapping,"
          + " so its columns cannot be told apart. Set the table property schema.name-mapping.default.");
    }
    FileColumns columns = new FileColumns(hadoop, parquet.schema(), byId, mapping, task.constants);
    StructType all = wanted;
    for (int i = 0; i < task.equalityDeletes.length; i++) {
      all = Structs.merge(all, task.equalityDeletes[i].columns);
    }
    boolean positions = task.positionDeletes.length > 0 || Structs.has(wanted, MetadataColumns.POSITION)
        || Structs.has(wanted, MetadataColumns.ROW_ID);
    StructType fileColumns = columns.toRead(MetadataColumns.stored(all));
    StructType read = positions
        ? fileColumns.add(new StructField(POSITION, LongType$.MODULE$, true, Metadata.empty())) : fileColumns;
    if (settings.pushFilters && variantTests != null) {
      parquet.leaveOut(variantTests, wanted, columns);
    }
    VectorizedParquetRecordReader reader = parquet.read(json(read), filter(parquet, columns));
    reader.initBatch(partitionSchema, file.partitionValues());
    reader.enableReturningBatches();
    ColumnarBatch batch = reader.resultBatch();
    DeletedMarks marks = marksDeleted ? new DeletedMarks() : null;
    BatchColumns batchColumns = new BatchColumns(batch, read, fileColumns, columns, task, marks);
    DeletedRows deleted = DeletedRows.of(task, batchColumns, hadoop, settings);
    return new Rows(parquet, reader, batchColumns.output(wanted, partitionSchema), deleted, marks, row());
  }

  private String json(StructType read) {
    if (!read.equals(lastRead)) {
      lastRead = read;
      lastJson = read.json();
    }
    return lastJson;
  }

  /** Spark expects batches, or rows; if it does not make its own unsafe rows of them, that is done here. */
  private Rows.Shape row() {
    if (settings.returnBatches) {
      return new Rows.Shape(true, null);
    }
    if (!settings.unsafeRows) {
      return new Rows.Shape(false, null);
    }
    StructType full = Structs.concat(wanted, partitionSchema);
    return new Rows.Shape(false, UnsafeProjection.create(full));
  }

  private FilterPredicate filter(ParquetFile parquet, FileColumns columns) {
    if (!settings.pushFilters || filters.length == 0) {
      return null;
    }
    Map names = new HashMap();
    columns.names(wanted, names);
    return PushedFilters.of(filters, names, parquet.schema(), settings, parquet.rebase(false));
  }

  private static void closeQuietly(ParquetFile parquet) {
    try {
      if (parquet != null) {
        parquet.close();
      }
    } catch (IOException e) {
      return;
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
