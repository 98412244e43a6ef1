package hms_iceberg.bridge.files;

import hms_iceberg.bridge.wire.SentOnce;
import java.io.Serializable;
import java.util.Map;

/** What a task must know of one data file besides its path and its split; travels with Spark's own description. */
public final class FileTask implements Serializable {
  public static final String KEY = "hms_iceberg.task";

  public final String path;
  /** PARQUET, ORC or AVRO. */
  public final String format;
  public final int specId;
  public final long sequenceNumber;
  /** The row id of the file's first row, or a negative number if rows have none. */
  public final long firstRowId;
  /** Values, in Spark's internal form, of the columns that are the same in all rows: field id to value. */
  public final Map constants;
  /** The values of the column _partition as JSON by field id, if it is asked for. */
  public final String partition;
  public final DeleteRun[] positionDeletes;
  private final SentOnce[] equalityDeletes;
  /** What the file is encrypted by, as manifests have it; null if it is not. */
  public final byte[] key;

  public FileTask(
      String path, String format, int specId, long sequenceNumber, long firstRowId, Map constants, String partition,
      DeleteRun[] positionDeletes, SentOnce[] equalityDeletes, byte[] key) {
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

  public boolean hasDeletes() {
    return positionDeletes.length > 0 || equalityDeletes.length > 0;
  }

  public EqualityDeletes[] equalityDeletes() {
    EqualityDeletes[] groups = new EqualityDeletes[equalityDeletes.length];
    for (int i = 0; i < groups.length; i++) {
      groups[i] = (EqualityDeletes) equalityDeletes[i].value();
    }
    return groups;
  }
}
