package hms_iceberg.bridge;

import java.io.Serializable;
import java.util.Map;

/** What a task must know of one data file besides its path and its split; travels with Spark's own description. */
final class FileTask implements Serializable {
  static final String KEY = "hms_iceberg.task";

  final String path;
  /** PARQUET, ORC or AVRO. */
  final String format;
  final int specId;
  final long sequenceNumber;
  /** The row id of the file's first row, or a negative number if rows have none. */
  final long firstRowId;
  /** Values, in Spark's internal form, of the columns that are the same in all rows: field id to value. */
  final Map constants;
  /** The values of the column _partition as JSON by field id, if it is asked for. */
  final String partition;
  final DeleteFile[] positionDeletes;
  final EqualityDeletes[] equalityDeletes;
  /** What the file is encrypted by, as manifests have it; null if it is not. */
  final byte[] key;

  FileTask(
      String path, String format, int specId, long sequenceNumber, long firstRowId, Map constants, String partition,
      DeleteFile[] positionDeletes, EqualityDeletes[] equalityDeletes, byte[] key) {
    this.path = path;
    this.format = format;
    this.specId = specId;
    this.sequenceNumber = sequenceNumber;
    this.firstRowId = firstRowId;
    this.constants = constants;
    this.partition = partition;
    this.positionDeletes = positionDeletes;
    this.equalityDeletes = equalityDeletes;
    this.key = key;
  }

  boolean hasDeletes() {
    return positionDeletes.length > 0 || equalityDeletes.length > 0;
  }
}
