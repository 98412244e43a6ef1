package hms_iceberg.bridge;

import java.io.Serializable;

/** A file of deletes: positions, a deletion vector in Puffin, or rows to match. */
final class DeleteFile implements Serializable {
  final String path;
  /** PARQUET, ORC, AVRO or PUFFIN. */
  final String format;
  final long size;
  final long sequenceNumber;
  /** Where the deletion vector lies in its Puffin file; the length is zero for other files. */
  final long contentOffset;
  final long contentSize;
  final long recordCount;
  /** What the file is encrypted by, as manifests have it; null if it is not. */
  final byte[] key;

  DeleteFile(
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

  boolean isVector() {
    return contentSize > 0;
  }
}
