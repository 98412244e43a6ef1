package hms_iceberg.bridge;

import java.io.Serializable;

/** The session's settings for reading Parquet, carried to the executors. */
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
}
