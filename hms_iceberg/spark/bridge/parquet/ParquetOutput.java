package hms_iceberg.bridge;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.runtime.AbstractFunction0;

/** One Parquet file that is being written, by Spark's own writer of rows. */
final class ParquetOutput implements FileOutput {
  private static final String BLOOM_FILTER = ParquetOutputFormat.BLOOM_FILTER_ENABLED + "#";
  private static final String BLOOM_FPP = ParquetOutputFormat.BLOOM_FILTER_FPP + "#";
  private static final String BLOOM_NDV = ParquetOutputFormat.BLOOM_FILTER_EXPECTED_NDV + "#";
  private static final String DICTIONARY = ParquetOutputFormat.ENABLE_DICTIONARY + "#";
  private static final String STATISTICS = "parquet.column.statistics.enabled#";

  /** Hadoop's own, and what Hive puts in its place. */
  private static final List LOCAL = Arrays.asList(
      new String[] {"org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem"});

  private final String location;
  private final Path path;
  private final Configuration conf;
  private final ParquetWriter writer;
  private final FloatMetrics floats;
  private final ProjectingInternalRow stored;
  /** Made here, where the file is written, and told to the driver with it; null if the table is not encrypted. */
  private final FileKey key;
  private long rows;

  ParquetOutput(WriteRules rules, Configuration conf, String location) throws IOException {
    this.location = location;
    this.path = new Path(location);
    this.conf = conf;
    this.floats = FloatMetrics.of(rules.schema);
    this.stored = StoredColumns.of(rules.fileSchema, rules.stored);
    this.key = rules.keyBytes == 0 ? null : FileKey.random(rules.keyBytes);
    ParquetWriter.Builder builder = new Builder(target(path, conf), rules).withSettings(conf, rules);
    if (key != null) {
      CipherWarmUp.begin();
      builder.withEncryption(key.encryption());
    }
    this.writer = Generation.writer(builder, rules.codec, conf);
  }

  /** On a local disk Hadoop starts a process for each file, to set the rights that it has anyway. */
  private static OutputFile target(Path path, Configuration conf) throws IOException {
    boolean local = LOCAL.contains(path.getFileSystem(conf).getClass().getName());
    if (!local || FsPermission.getUMask(conf).toShort() != FsPermission.DEFAULT_UMASK) {
      return HadoopOutputFile.fromPath(path, conf);
    }
    java.nio.file.Path file = new File(path.toUri().getPath()).toPath();
    Files.createDirectories(file.getParent());
    return new LocalOutputFile(file);
  }

  public void write(InternalRow row) throws IOException {
    if (floats != null) {
      floats.add(row);
    }
    if (stored != null) {
      stored.project(row);
    }
    writer.write(stored == null ? row : (Object) stored);
    rows++;
  }

  public long size() {
    return writer.getDataSize();
  }

  public WrittenFile close(PartitionKey partition) throws IOException {
    writer.close();
    ByteArrayOutputStream footer = new ByteArrayOutputStream();
    Util.writeFileMetaData(new ParquetMetadataConverter().toParquetMetadata(1, writer.getFooter()), footer);
    long size = path.getFileSystem(conf).getFileStatus(path).getLen();
    return new WrittenFile(
        location, size, rows, partition, floats == null ? null : floats.json(), WrittenFile.deflated(footer),
        key == null ? null : key.encoded(size));
  }

  public void abandon() {
    try {
      writer.close();
    } catch (Exception e) {
      // What was wrong with the file is known already; it goes.
    } finally {
      WrittenFile.delete(location, conf);
    }
  }

  /** Days and times are written as they are, whatever the session says of calendars of old. */
  static final class MakeSupport extends AbstractFunction0 {
    private final WriteRules rules;

    MakeSupport(WriteRules rules) {
      this.rules = rules;
    }

    public Object apply() {
      return new IcebergWriteSupport(rules);
    }

    static WriteSupport make(WriteRules rules) {
      SQLConf own = new SQLConf();
      own.setConfString("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED");
      own.setConfString("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED");
      return (WriteSupport) SQLConf$.MODULE$.withExistingConf(own, new MakeSupport(rules));
    }
  }

  static final class Builder extends ParquetWriter.Builder {
    private final WriteRules rules;

    Builder(OutputFile file, WriteRules rules) {
      super(file);
      this.rules = rules;
    }

    protected ParquetWriter.Builder self() {
      return this;
    }

    protected WriteSupport getWriteSupport(Configuration conf) {
      return MakeSupport.make(rules);
    }

    ParquetWriter.Builder withSettings(Configuration conf, WriteRules rules) {
      withConf(conf);
      withCompressionCodec(CompressionCodecName.valueOf(rules.codec));
      withRowGroupSize(conf.getLong(ParquetOutputFormat.BLOCK_SIZE, 134217728L));
      SparkVersions.limitRowsOfGroups(this, conf);
      withPageSize(conf.getInt(ParquetOutputFormat.PAGE_SIZE, 1048576));
      withPageRowCountLimit(conf.getInt(ParquetOutputFormat.PAGE_ROW_COUNT_LIMIT, 20000));
      withDictionaryPageSize(conf.getInt(ParquetOutputFormat.DICTIONARY_PAGE_SIZE, 2097152));
      Generation.bloomFilterBytes(this, conf.getInt(ParquetOutputFormat.BLOOM_FILTER_MAX_BYTES, 1048576));
      withMinRowCountForPageSizeCheck(conf.getInt(ParquetOutputFormat.MIN_ROW_COUNT_FOR_PAGE_SIZE_CHECK, 100));
      withMaxRowCountForPageSizeCheck(conf.getInt(ParquetOutputFormat.MAX_ROW_COUNT_FOR_PAGE_SIZE_CHECK, 10000));
      withWriterVersion(ParquetProperties.WriterVersion.fromString(conf.get(ParquetOutputFormat.WRITER_VERSION, "v1")));
      for (Iterator it = rules.settings.entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        ofColumn((String) entry.getKey(), (String) entry.getValue());
      }
      return this;
    }

    private void ofColumn(String key, String value) {
      String column = key.substring(key.indexOf('#') + 1);
      if (key.startsWith(BLOOM_FILTER)) {
        withBloomFilterEnabled(column, Boolean.parseBoolean(value));
      } else if (key.startsWith(BLOOM_FPP)) {
        withBloomFilterFPP(column, Double.parseDouble(value));
      } else if (key.startsWith(BLOOM_NDV)) {
        withBloomFilterNDV(column, Long.parseLong(value));
      } else if (key.startsWith(DICTIONARY)) {
        withDictionaryEncoding(column, Boolean.parseBoolean(value));
      } else if (key.startsWith(STATISTICS)) {
        Generation.statistics(this, column, Boolean.parseBoolean(value));
      }
    }
  }
}
