package hms_iceberg.bridge;

import org.apache.hadoop.fs.Path;

/** A file, or a split of it, that is read. */
final class FilePart {
  /** What it is, for messages. */
  final String kind;
  final String format;
  final Path path;
  final long start;
  final long length;
  /** The size of the whole file. */
  final long size;
  /** What the file is encrypted by, as manifests have it; null if it is not. */
  final byte[] key;

  FilePart(String kind, String format, Path path, long start, long length, long size, byte[] key) {
    this.kind = kind;
    this.format = format;
    this.path = path;
    this.start = start;
    this.length = length;
    this.size = size;
    this.key = key;
  }

  static FilePart of(DeleteFile file) {
    return new FilePart("delete file", file.format, new Path(file.path), 0, file.size, file.size, file.key);
  }
}
