package hms_iceberg.bridge.output;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import org.apache.hadoop.security.AccessControlException;

/** A file that a task has no right to write: the words that the driver has for it, in the place of a bare path. */
public final class StorageDenied {
  private StorageDenied() {}

  public static IOException told(IOException error) {
    boolean denied = error instanceof AccessDeniedException || error instanceof AccessControlException
        || (error instanceof FileNotFoundException && String.valueOf(error.getMessage()).contains("Permission denied"));
    return !denied ? error : new IOException("StorageDeniedError: Cannot write " + error.getMessage() + ". The user"
        + " of Spark's executors, or the key for the store, lacks the right to write it. Grant that right, or use other"
        + " credentials.", error);
  }
}
