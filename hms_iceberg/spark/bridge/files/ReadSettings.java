package hms_iceberg.bridge.files;

import hms_iceberg.bridge.columns.FixedSettings;
import java.io.Serializable;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;

/** The session's settings for reading files, carried to the executors; a task has its own. */
public final class ReadSettings implements Serializable {
  public boolean returnBatches;
  public boolean offHeap;
  public int batchSize;
  public int orcBatchSize;
  public boolean pushFilters;
  boolean pushDates;
  boolean pushTimestamps;
  boolean pushDecimals;
  boolean pushStrings;
  int inThreshold;
  /** The columns that were read of the file before, which are mostly those of the next, too. */
  private transient StructType lastRead;
  private transient String lastJson;

  /** Those of a session; what Spark's reader looks up elsewhere is put into the configuration. */
  public static ReadSettings of(SparkSession session, Configuration conf, StructType columns) {
    // Called for what it puts there: everything that this version of Spark's Parquet reader looks up. The configuration is
    // an empty one, since Spark sends it to all executors, for a reader that nobody uses.
    Configuration looked = new Configuration(false);
    new ParquetFileFormat().buildReaderWithPartitionValues(
        session, columns, new StructType(), columns, Nil$.MODULE$,
        (Map) ((Map) Map$.MODULE$.empty()).updated(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), "false"), looked);
    for (Iterator it = looked.iterator(); it.hasNext();) {
      java.util.Map.Entry entry = (java.util.Map.Entry) it.next();
      conf.set((String) entry.getKey(), (String) entry.getValue());
    }
    FixedSettings.apply(conf);
    SQLConf own = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
    ReadSettings settings = new ReadSettings();
    settings.offHeap = own.offHeapColumnVectorEnabled();
    settings.batchSize = own.parquetVectorizedReaderBatchSize();
    settings.orcBatchSize = own.orcVectorizedReaderBatchSize();
    settings.pushFilters = own.parquetFilterPushDown();
    settings.pushDates = own.parquetFilterPushDownDate();
    settings.pushTimestamps = own.parquetFilterPushDownTimestamp();
    settings.pushDecimals = own.parquetFilterPushDownDecimal();
    settings.pushStrings = own.parquetFilterPushDownStringPredicate();
    settings.inThreshold = own.parquetFilterPushDownInFilterThreshold();
    return settings;
  }

  /** Columns as JSON, as Spark's reader wants them. */
  public String json(StructType read) {
    if (!read.equals(lastRead)) {
      lastRead = read;
      lastJson = read.json();
    }
    return lastJson;
  }
}
