package hms_iceberg.bridge.files;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.Path;

/** What is wrong with a file that a snapshot names. */
public final class FileFailures {
  private FileFailures() {}

  public static IOException tampered(Path path, Exception cause) {
    return new IOException("TamperedFileError: Cannot decrypt " + path + ": it was changed after it was written, another"
        + " file was put in its place, or it was encrypted by another key. Restore it from a copy that you trust.", cause);
  }

  public static FileNotFoundException missing(String kind, Path path) {
    return new FileNotFoundException("The table's snapshot refers to the " + kind + " " + path + ", which does not"
        + " exist. Somebody may have deleted it by hand, or expired the snapshot while this query ran.");
  }
}
