package hms_iceberg.bridge.orc;

import hms_iceberg.bridge.columns.AbsentColumns;
import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.files.ReadSettings;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Batches of an ORC file, by ORC's own vectorized reader. */
public final class OrcBatches extends FileBatches {
  private static final String DECODER = "org.apache.orc.";

  private final FilePart part;
  private final ColumnsToRead wanted;
  private final Reader file;
  private final OrcColumns columns;
  private final RecordReader reader;
  private final VectorizedRowBatch batch;
  private final Vectors.Positions positions = new Vectors.Positions();

  private OrcBatches(
      FilePart part, ColumnsToRead wanted, Reader file, OrcColumns columns, RecordReader reader, int batchSize) {
    this.part = part;
    this.wanted = wanted;
    this.file = file;
    this.columns = columns;
    this.reader = reader;
    org.apache.hadoop.hive.ql.exec.vector.ColumnVector[] vectors = columns.batch();
    this.batch = new VectorizedRowBatch(vectors.length, batchSize);
    this.batch.cols = vectors;
  }

  public static FileBatches open(FilePart part, ColumnsToRead wanted, Configuration conf, ReadSettings settings)
      throws IOException {
    OrcFile.ReaderOptions options = OrcFile.readerOptions(conf).filesystem(part.path.getFileSystem(conf))
        .maxLength(part.size).useUTCTimestamp(true);
    Reader file = null;
    boolean done = false;
    try {
      file = OrcFile.createReader(part.path, options);
      // Days and times are taken as they are stored, whatever calendar the writer says it counted in.
      options.convertToProlepticGregorian(file.writerUsedProlepticGregorian());
      FileBatches batches = of(part, wanted, file, settings);
      done = true;
      return batches;
    } catch (Exception e) {
      throw failed(part, DECODER, e);
    } finally {
      if (!done && file != null) {
        file.close();
      }
    }
  }

  private static FileBatches of(FilePart part, ColumnsToRead wanted, Reader file, ReadSettings settings)
      throws IOException {
    OrcColumns columns =
        new OrcColumns(part, file.getSchema(), wanted.nameMapping, wanted.constants, settings.orcBatchSize);
    columns.include(wanted.stored);
    Reader.Options options = file.options().range(part.start, part.length).include(columns.included());
    if (settings.pushFilters && wanted.filters.length > 0) {
      Map names = new HashMap();
      columns.names(wanted.stored, names);
      SearchArgument search = OrcSearch.of(wanted.filters, names);
      if (search != null) {
        options.searchArgument(search, new String[0]);
        options.allowSARGToFilter(false);
      }
    }
    return new OrcBatches(part, wanted, file, columns, file.rows(options), settings.orcBatchSize);
  }

  public boolean next() throws IOException {
    try {
      positions.set(reader.getRowNumber());
      boolean found = reader.nextBatch(batch);
      columns.keepSigns();
      return found;
    } catch (Exception e) {
      throw failed(part, DECODER, e);
    }
  }

  public int rows() {
    return batch.size;
  }

  public ColumnVector[] columns(StructType stored) throws IOException {
    return columns.columns(stored);
  }

  public ColumnVector positions() {
    return positions;
  }

  public ColumnVector[] partition() {
    return AbsentColumns.partition(wanted.partitionSchema, wanted.partition);
  }

  public void close() throws IOException {
    reader.close();
    file.close();
  }
}
