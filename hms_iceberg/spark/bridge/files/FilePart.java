package hms_iceberg.bridge.files;

import org.apache.hadoop.fs.Path;

/** A file, or a split of it, that is read. */
public final class FilePart {
  /** What it is, for messages. */
  public final String kind;
  public final String format;
  public final Path path;
  public final long start;
  public final long length;
  /** The size of the whole file. */
  public final long size;
  /** What the file is encrypted by, as manifests have it; null if it is not. */
  public final byte[] key;

  public FilePart(String kind, String format, Path path, long start, long length, long size, byte[] key) {
    this.kind = kind;
    this.format = format;
    this.path = path;
    this.start = start;
    this.length = length;
    this.size = size;
    this.key = key;
  }

  public static FilePart of(DeleteFile file) {
    return new FilePart("delete file", file.format, new Path(file.path), 0, file.size, file.size, file.key);
  }
}
