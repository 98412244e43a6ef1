package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Set;

/** A statement that reads rows because it changes some of them. */
public interface RowChange {
  /** By what its files are planned, if these are the conditions of one of its scans; null for all files. */
  ObjectNode planFilter(ObjectNode scanned);

  /** Whether the files with such rows are written anew: all of their rows are read then, those of a file by one task. */
  boolean replacesFiles();

  /** Called with the paths of the files that each scan is planned with. */
  void planned(List paths);

  /** Of the planned files, the paths of those that are read; null for all. It is asked when the first is to be read. */
  Set filesToRead();
}
