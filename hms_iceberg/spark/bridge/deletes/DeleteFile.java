package hms_iceberg.bridge;

import java.io.Serializable;

/** A file of deletes: positions in Parquet, a deletion vector in Puffin, or rows to match. */
final class DeleteFile implements Serializable {
  final String path;
  final long size;
  final long sequenceNumber;
  /** Where the deletion vector lies in its Puffin file; the length is zero for other files. */
  final long contentOffset;
  final long contentSize;
  final long recordCount;

  DeleteFile(String path, long size, long sequenceNumber, long contentOffset, long contentSize, long recordCount) {
    this.path = path;
    this.size = size;
    this.sequenceNumber = sequenceNumber;
    this.contentOffset = contentOffset;
    this.contentSize = contentSize;
    this.recordCount = recordCount;
  }

  boolean isVector() {
    return contentSize > 0;
  }
}
