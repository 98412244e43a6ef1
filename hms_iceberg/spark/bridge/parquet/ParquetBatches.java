package hms_iceberg.bridge.parquet;

import hms_iceberg.bridge.columns.ColumnView;
import hms_iceberg.bridge.columns.TextDictionary;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.files.PushedFilters;
import hms_iceberg.bridge.files.ReadSettings;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Batches of a Parquet file, by Spark's own vectorized reader. */
public final class ParquetBatches extends FileBatches {
  /** Spark's reader fills a column of this name with the row's position in the file. */
  private static final String POSITION = "_tmp_metadata_row_index";

  private final ParquetFile file;
  private final FileColumns columns;
  private final StructType fileColumns;
  private final StructType read;
  private final ColumnarBatch batch;
  private final TextDictionary[] dictionaries;

  private ParquetBatches(
      ParquetFile file, FileColumns columns, StructType fileColumns, StructType read, ColumnarBatch batch) {
    this.file = file;
    this.columns = columns;
    this.fileColumns = fileColumns;
    this.read = read;
    this.batch = batch;
    this.dictionaries = new TextDictionary[batch.numCols()];
  }

  public static FileBatches open(FilePart part, ColumnsToRead wanted, Configuration conf, ReadSettings settings)
      throws Exception {
    ParquetFile file = new ParquetFile(conf, part.kind, part.path, part.start, part.length, part.key, settings);
    boolean done = false;
    try {
      FileBatches batches = of(file, part, wanted, conf, settings);
      done = true;
      return batches;
    } finally {
      if (!done) {
        file.close();
      }
    }
  }

  private static FileBatches of(
      ParquetFile file, FilePart part, ColumnsToRead wanted, Configuration conf, ReadSettings settings)
      throws Exception {
    boolean byId = file.hasFieldIds();
    if (!byId && wanted.nameMapping == null) {
      throw withoutIds(part);
    }
    FileColumns columns =
        new FileColumns(conf, file.schema(), byId, byId ? null : wanted.nameMapping, wanted.constants);
    StructType fileColumns = columns.toRead(wanted.stored);
    StructType read = !wanted.positions ? fileColumns
        : fileColumns.add(new StructField(POSITION, LongType$.MODULE$, true, Metadata.empty()));
    if (settings.pushFilters && wanted.variantTests != null) {
      file.leaveOut(wanted.variantTests, wanted.stored, columns);
    }
    VectorizedParquetRecordReader reader =
        file.read(settings.json(read), filter(file, columns, wanted, settings));
    reader.initBatch(wanted.partitionSchema, wanted.partition);
    reader.enableReturningBatches();
    return new ParquetBatches(file, columns, fileColumns, read, reader.resultBatch());
  }

  private static FilterPredicate filter(
      ParquetFile file, FileColumns columns, ColumnsToRead wanted, ReadSettings settings) {
    if (!settings.pushFilters || wanted.filters.length == 0) {
      return null;
    }
    Map names = new HashMap();
    columns.names(wanted.stored, names);
    return PushedFilters.of(wanted.filters, names, file.schema(), settings, file.rebase(false));
  }

  public boolean next() throws IOException {
    if (!file.nextBatch()) {
      return false;
    }
    TextDictionary.replace(batch, dictionaries);
    return true;
  }

  public int rows() {
    return batch.numRows();
  }

  public ColumnVector[] columns(StructType wanted) {
    ColumnView[] views = columns.views(wanted, fileColumns);
    ColumnVector[] vectors = new ColumnVector[views.length];
    for (int i = 0; i < vectors.length; i++) {
      vectors[i] = views[i].of(views[i].ordinal < 0 ? null : batch.column(views[i].ordinal));
    }
    return vectors;
  }

  public ColumnVector positions() {
    return batch.column(read.fieldIndex(POSITION));
  }

  public ColumnVector[] partition() {
    int first = read.fields().length;
    ColumnVector[] vectors = new ColumnVector[batch.numCols() - first];
    for (int i = 0; i < vectors.length; i++) {
      vectors[i] = batch.column(first + i);
    }
    return vectors;
  }

  public void close() throws IOException {
    file.close();
  }
}
