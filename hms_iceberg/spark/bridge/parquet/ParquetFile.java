package hms_iceberg.bridge.parquet;

import hms_iceberg.bridge.columns.FixedSettings;
import hms_iceberg.bridge.files.CipherWarmUp;
import hms_iceberg.bridge.files.FileFailures;
import hms_iceberg.bridge.files.FileKey;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.wire.SparkVersions;
import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.execution.datasources.DataSourceUtils;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.runtime.AbstractFunction1;

/** One Parquet file, or the row groups of one split of it, opened with its footer read once. */
public final class ParquetFile implements Closeable {
  private static final String SPARK_VERSION = "org.apache.spark.version";
  private static final long LARGE = 1048576L;

  private final Configuration conf;
  private final Path path;
  private final long start;
  private final long length;
  private final HadoopInputFile file;
  private final SeekableInputStream stream;
  private ParquetMetadata footer;
  private final ReadSettings settings;
  private VectorizedParquetRecordReader reader;

  /**
   * What kind of file it is stands in the error of one that is missing. The configuration becomes its own. The key is
   * what manifests say of that of an encrypted file; null for others.
   */
  ParquetFile(Configuration conf, String kind, Path path, long start, long length, byte[] key, ReadSettings settings)
      throws IOException {
    this.conf = conf;
    this.path = path;
    this.start = start;
    this.length = length;
    this.settings = settings;
    try {
      this.file = HadoopInputFile.fromPath(path, conf);
    } catch (FileNotFoundException e) {
      throw FileFailures.missing(kind, path);
    }
    ParquetReadOptions.Builder options = HadoopReadOptions.builder(conf, path).withRange(start, start + length);
    if (key != null) {
      if (length >= LARGE) {
        CipherWarmUp.begin();
      }
      options.withDecryption(FileKey.of(key, path).decryption());
    }
    this.stream = file.newStream();
    try {
      this.footer = ParquetFileReader.readFooter(file, options.build(), stream);
    } catch (ParquetCryptoRuntimeException e) {
      stream.close();
      throw FileFailures.tampered(path, e);
    }
  }

  public MessageType schema() {
    return footer.getFileMetaData().getSchema();
  }

  /** Does not read row groups of which tests of values within variants say that no row matches. */
  void leaveOut(String variantTests, StructType wanted, FileColumns columns) {
    footer = VariantGroups.kept(footer, variantTests, wanted, columns);
  }

  boolean hasFieldIds() {
    return hasFieldIds(schema());
  }

  private static boolean hasFieldIds(GroupType group) {
    for (int i = 0; i < group.getFieldCount(); i++) {
      Type field = group.getType(i);
      if (field.getId() != null || (!field.isPrimitive() && hasFieldIds(field.asGroupType()))) {
        return true;
      }
    }
    return false;
  }

  /**
   * A reader of exactly these columns, which have the file's own names; they are given as JSON.
   */
  public VectorizedParquetRecordReader read(String columns, FilterPredicate filter) throws IOException {
    conf.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA(), columns);
    conf.set(ParquetInputFormat.READ_SUPPORT_CLASS, ParquetReadSupport.class.getName());
    if (filter != null) {
      ParquetInputFormat.setFilterPredicate(conf, filter);
    }
    RebaseSpec dates = rebase(false);
    RebaseSpec int96 = rebase(true);
    reader = new VectorizedParquetRecordReader(
        null, dates.mode().toString(), dates.timeZone(), int96.mode().toString(), int96.timeZone(),
        settings.offHeap, settings.batchSize);
    TaskAttemptID attempt = new TaskAttemptID(new TaskID(new JobID(), TaskType.MAP, 0), 0);
    FileSplit split = new FileSplit(path, start, length, new String[0]);
    try {
      SparkVersions.initialize(reader, split, new TaskAttemptContextImpl(conf, attempt), file, stream, footer);
    } catch (IOException e) {
      throw e;
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IOException(e);
    }
    return reader;
  }

  public ColumnarBatch batch() {
    return reader.resultBatch();
  }

  public boolean nextBatch() throws IOException {
    try {
      return reader.nextBatch();
    } catch (ParquetCryptoRuntimeException e) {
      throw FileFailures.tampered(path, e);
    }
  }

  public RebaseSpec rebase(boolean int96) {
    Lookup lookup = new Lookup(footer.getFileMetaData().getKeyValueMetaData(), int96);
    return int96 ? DataSourceUtils.int96RebaseSpec(lookup, FixedSettings.REBASE_MODE)
        : DataSourceUtils.datetimeRebaseSpec(lookup, FixedSettings.REBASE_MODE);
  }

  public void close() throws IOException {
    if (reader != null) {
      reader.close();
    }
    stream.close();
  }

  /** The marks of a file's writer; those of Hive as Spark would have said the same. */
  public static final class Lookup extends AbstractFunction1 {
    private final Map metadata;

    public Lookup(Map metadata, boolean int96) {
      Object dates = metadata.get("writer.date.proleptic");
      dates = dates == null ? metadata.get("writer.proleptic") : dates;
      Object zone = metadata.get("writer.time.zone");
      boolean hive = dates != null || zone != null;
      if (metadata.get(SPARK_VERSION) != null || !hive) {
        this.metadata = metadata;
        return;
      }
      this.metadata = new HashMap();
      if (int96 || (dates != null && !Boolean.parseBoolean((String) dates))) {
        boolean old = Boolean.parseBoolean((String) metadata.get("writer.zone.conversion.legacy"));
        this.metadata.put(SPARK_VERSION, "2.4");
        this.metadata.put("org.apache.spark.timeZone", old ? zone : "UTC");
      }
    }

    public Object apply(Object key) {
      return metadata.get(key);
    }
  }
}
