package hms_iceberg.bridge.files;

import java.io.Serializable;

/** A file of deletes: positions, a deletion vector in Puffin, or rows to match. */
public final class DeleteFile implements Serializable {
  public final String path;
  /** PARQUET, ORC, AVRO or PUFFIN. */
  public final String format;
  public final long size;
  public final long sequenceNumber;
  /** Where the deletion vector lies in its Puffin file; the length is zero for other files. */
  public final long contentOffset;
  public final long contentSize;
  public final long recordCount;
  /** What the file is encrypted by, as manifests have it; null if it is not. */
  public final byte[] key;

  public DeleteFile(
      String path, String format, long size, long sequenceNumber, long contentOffset, long contentSize,
      long recordCount, byte[] key) {
    this.path = path;
    this.format = format;
    this.size = size;
    this.sequenceNumber = sequenceNumber;
    this.contentOffset = contentOffset;
    this.contentSize = contentSize;
    this.recordCount = recordCount;
    this.key = key;
  }

  public boolean isVector() {
    return contentSize > 0;
  }
}
