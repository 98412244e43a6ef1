package hms_iceberg.bridge.write;

import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.wire.ExecutorConf;
import hms_iceberg.bridge.wire.Failures;
import java.io.IOException;
import java.io.Serializable;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.util.CollectionAccumulator;
import scala.collection.immutable.Map$;

/** Makes the writers of tasks, on executors. */
public final class RowWriters implements DataWriterFactory, StreamingDataWriterFactory, Serializable {
  private final WriteRules rules;
  private final ExecutorConf conf;
  private final CollectionAccumulator finished;

  RowWriters(SparkSession session, WriteRules rules, CollectionAccumulator finished) {
    this.rules = rules;
    this.finished = finished;
    this.conf = configuration(session, rules);
  }

  public DataWriter createWriter(int partitionId, long taskId) {
    return createWriter(partitionId, taskId, 0);
  }

  public DataWriter createWriter(int partitionId, long taskId, long epoch) {
    return new RowWriter(files(partitionId, taskId, epoch));
  }

  /** The files of one task. */
  public TaskFiles files(int partitionId, long taskId, long epoch) {
    return new TaskFiles(rules, conf.value(), finished, partitionId, taskId, epoch);
  }

  /** What writers and file systems are told, on every executor. */
  private static ExecutorConf configuration(SparkSession session, WriteRules rules) {
    Configuration conf = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf();
    if ("parquet".equals(rules.format)) {
      conf = ofParquet(session, rules, conf);
    }
    for (Iterator it = rules.settings.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      conf.set((String) entry.getKey(), (String) entry.getValue());
    }
    return ExecutorConf.of(session, conf);
  }

  private static Configuration ofParquet(SparkSession session, WriteRules rules, Configuration conf) {
    try {
      Job job = Job.getInstance(conf);
      new ParquetFileFormat().prepareWrite(
          session, job, (scala.collection.immutable.Map) Map$.MODULE$.empty(), rules.fileSchema);
      conf = job.getConfiguration();
    } catch (IOException e) {
      throw Failures.of("StorageError: cannot prepare the write: " + e.getMessage(), e);
    }
    conf.unset("org.apache.spark.sql.parquet.variant.shredding.attributes"); // the table says which variants are shredded
    conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
    conf.set("spark.sql.parquet.writeLegacyFormat", "false");
    conf.set("spark.sql.parquet.fieldId.write.enabled", "true");
    return conf;
  }
}
