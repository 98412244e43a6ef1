package hms_iceberg.bridge.parquet;

import hms_iceberg.bridge.files.CipherWarmUp;
import hms_iceberg.bridge.files.FileKey;
import hms_iceberg.bridge.output.FileOutput;
import hms_iceberg.bridge.output.NewFile;
import hms_iceberg.bridge.output.PlainRow;
import hms_iceberg.bridge.output.RowMetrics;
import hms_iceberg.bridge.output.StorageDenied;
import hms_iceberg.bridge.output.StoredColumns;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.output.WrittenFile;
import hms_iceberg.bridge.partitions.PartitionKey;
import hms_iceberg.bridge.variants.ShreddedType;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.SparkVersions;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.OutputFile;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.runtime.AbstractFunction0;

/**
 * One Parquet file that is being written, by Spark's own writer of rows. If variants are to be shredded, its first rows
 * are kept until they have told how, and the file begins after them.
 */
public final class ParquetOutput implements FileOutput {
  private static final String BLOOM_FILTER = ParquetOutputFormat.BLOOM_FILTER_ENABLED + "#";
  private static final String BLOOM_FPP = ParquetOutputFormat.BLOOM_FILTER_FPP + "#";
  private static final String BLOOM_NDV = ParquetOutputFormat.BLOOM_FILTER_EXPECTED_NDV + "#";
  private static final String DICTIONARY = ParquetOutputFormat.ENABLE_DICTIONARY + "#";
  private static final String STATISTICS = "parquet.column.statistics.enabled#";

  private final String location;
  private final Path path;
  private final Configuration conf;
  private final WriteRules rules;
  private final RowMetrics metrics;
  private final ProjectingInternalRow stored;
  /** Made here, where the file is written, and told to the driver with it; null if the table is not encrypted. */
  private final FileKey key;
  private long rows;
  /** The first rows; null once the file has begun. */
  private List first;
  private IcebergWriteSupport support;
  private ParquetWriter writer;

  public ParquetOutput(WriteRules rules, Configuration conf, String location) throws IOException {
    this.rules = rules;
    this.location = location;
    this.path = new Path(location);
    this.conf = conf;
    this.metrics = RowMetrics.of(rules.schema, rules.columns);
    this.stored = StoredColumns.of(rules.fileSchema, rules.stored);
    this.key = rules.keyBytes == 0 ? null : FileKey.random(rules.keyBytes);
    boolean shreds = rules.shredBy > 0 && IcebergWriteSupport.canShred() && PlainRow.isPossible();
    this.first = shreds ? new ArrayList() : null;
    if (first == null) {
      open(null);
    }
  }

  private void open(ShreddedType[] shredded) throws IOException {
    this.support = MakeSupport.make(rules, shredded);
    ParquetWriter.Builder builder = new Builder(NewFile.at(path, conf), support).withSettings(conf, rules, shredded);
    if (key != null) {
      CipherWarmUp.begin();
      builder.withEncryption(key.encryption());
    }
    this.writer = Generation.writer(builder, rules.codec, conf);
  }

  /** Begins the file with the rows that were kept. */
  private void begin() throws IOException {
    List kept = first;
    first = null;
    try {
      open(ShreddedType.ofColumns(kept, rules.fileSchema));
    } catch (IOException e) {
      throw StorageDenied.told(e);
    }
    for (int i = 0; i < kept.size(); i++) {
      writer.write(kept.get(i));
    }
  }

  public void write(InternalRow row) throws IOException {
    metrics.add(row);
    if (stored != null) {
      stored.project(row);
    }
    InternalRow written = stored == null ? row : (InternalRow) stored;
    rows++;
    if (first == null) {
      writer.write(written);
      return;
    }
    first.add(written.copy());
    if (first.size() >= rules.shredBy) {
      begin();
    }
  }

  public long size() {
    return writer == null ? 0 : writer.getDataSize();
  }

  public WrittenFile close(PartitionKey partition) throws IOException {
    if (first != null) {
      begin();
    }
    writer.close();
    ByteArrayOutputStream footer = new ByteArrayOutputStream();
    Util.writeFileMetaData(new ParquetMetadataConverter().toParquetMetadata(1, writer.getFooter()), footer);
    long size = path.getFileSystem(conf).getFileStatus(path).getLen();
    return WrittenFile.parquet(
        location, size, rows, partition, metrics, support.nanLeaves(), WrittenFile.deflated(footer),
        key == null ? null : key.encoded(size));
  }

  public void abandon() {
    try {
      if (writer != null) {
        writer.close();
      }
    } catch (Exception e) {
      // What was wrong with the file is known already; it goes.
    } finally {
      WrittenFile.delete(location, conf);
    }
  }

  /** Days and times are written as they are, whatever the session says of calendars of old. */
  static final class MakeSupport extends AbstractFunction0 {
    private final WriteRules rules;
    private final ShreddedType[] shredded;

    MakeSupport(WriteRules rules, ShreddedType[] shredded) {
      this.rules = rules;
      this.shredded = shredded;
    }

    public Object apply() {
      return new IcebergWriteSupport(rules, shredded);
    }

    static IcebergWriteSupport make(WriteRules rules, ShreddedType[] shredded) {
      SQLConf own = new SQLConf();
      own.setConfString("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED");
      own.setConfString("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED");
      return (IcebergWriteSupport) SQLConf$.MODULE$.withExistingConf(own, new MakeSupport(rules, shredded));
    }
  }

  public static final class Builder extends ParquetWriter.Builder {
    private final WriteSupport support;

    public Builder(OutputFile file, WriteSupport support) {
      super(file);
      this.support = support;
    }

    protected ParquetWriter.Builder self() {
      return this;
    }

    protected WriteSupport getWriteSupport(Configuration conf) {
      return support;
    }

    ParquetWriter.Builder withSettings(Configuration conf, WriteRules rules, ShreddedType[] shredded) {
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
        String key = (String) entry.getKey();
        int end = key.indexOf('#') + 1;
        List columns = ShreddedType.columns(key.substring(end), rules.fileSchema, shredded);
        for (int i = 0; end > 0 && i < columns.size(); i++) {
          ofColumn(key.substring(0, end), (String) columns.get(i), (String) entry.getValue());
        }
      }
      return this;
    }

    private void ofColumn(String key, String column, String value) {
      if (key.equals(BLOOM_FILTER)) {
        withBloomFilterEnabled(column, Boolean.parseBoolean(value));
      } else if (key.equals(BLOOM_FPP)) {
        withBloomFilterFPP(column, Double.parseDouble(value));
      } else if (key.equals(BLOOM_NDV)) {
        withBloomFilterNDV(column, Long.parseLong(value));
      } else if (key.equals(DICTIONARY)) {
        withDictionaryEncoding(column, Boolean.parseBoolean(value));
      } else if (key.equals(STATISTICS)) {
        Generation.statistics(this, column, Boolean.parseBoolean(value));
      }
    }
  }
}
