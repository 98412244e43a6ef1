package hms_iceberg.bridge;

import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/** The session's settings for reading files, carried to the executors; a task has its own. */
final class ReadSettings implements Serializable {
  boolean returnBatches;
  boolean unsafeRows;
  boolean offHeap;
  int batchSize;
  boolean pushFilters;
  boolean pushDates;
  boolean pushTimestamps;
  boolean pushDecimals;
  boolean pushStrings;
  int inThreshold;
  /** The columns that were read of the file before, which are mostly those of the next, too. */
  private transient StructType lastRead;
  private transient String lastJson;

  /** Columns as JSON, as Spark's reader wants them. */
  String json(StructType read) {
    if (!read.equals(lastRead)) {
      lastRead = read;
      lastJson = read.json();
    }
    return lastJson;
  }
}
