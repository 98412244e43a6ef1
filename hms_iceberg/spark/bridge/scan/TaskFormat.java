package hms_iceberg.bridge.scan;

import java.io.Serializable;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** Reads one row of every file: the task, which travels beside the file's path, and nothing of the file itself. */
public final class TaskFormat implements FileFormat, DataSourceRegister, Serializable {
  public static final String KEY = "hms_iceberg.worker-task";

  private final String description;

  TaskFormat(String description) {
    this.description = description;
  }

  /** Spark shows this where it names what is scanned. */
  public String shortName() {
    return "iceberg " + description;
  }

  public String toString() {
    return "Iceberg through Arrow";
  }

  public Option inferSchema(SparkSession session, Map options, Seq files) {
    return Option.empty();
  }

  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType schema) {
    throw new UnsupportedOperationException("Files of " + description + " are not written by Spark.");
  }

  public boolean isSplitable(SparkSession session, Map options, Path path) {
    return false;
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType dataSchema, StructType partitionSchema, StructType requiredSchema,
      Seq filters, Map options, Configuration conf) {
    return new TaskReader(requiredSchema);
  }

  static final class TaskReader extends AbstractFunction1 implements Serializable {
    private final StructType required;

    TaskReader(StructType required) {
      this.required = required;
    }

    public Object apply(Object split) {
      Object task = ((PartitionedFile) split).otherConstantMetadataColumnValues().apply(KEY);
      Object[] values = required.fields().length == 0 ? new Object[0] : new Object[] {task};
      Object row = UnsafeProjection.create(required).apply(new GenericInternalRow(values));
      return CollectionConverters.asScala(Collections.singletonList(row).iterator());
    }
  }
}
