package hms_iceberg.bridge;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The files that a copy-on-write operation replaces. Metadata says which files may hold rows that change; a query over
 * their rows says which do, so that no others are read as a whole and written anew. It runs once, before the first
 * file is read, for all scans of the operation: an UPDATE with a subquery has two.
 */
final class ReplacedFiles {
  private final Set planned = new HashSet();
  private LogicalPlan matching;
  private Set matched;

  /**
   * Called when a scan of the operation is planned.
   *
   * @param paths the files that may hold such rows
   * @param matching gives the paths of those that do; null where all are replaced
   */
  synchronized void plan(List paths, LogicalPlan matching) {
    planned.addAll(paths);
    this.matching = matching;
  }

  /** Whether a file is replaced, so that its rows are to be read. */
  boolean has(String path) {
    return matched().contains(path);
  }

  /** All paths, in order. */
  List paths() {
    List paths = new ArrayList(matched());
    Collections.sort(paths);
    return paths;
  }

  private synchronized Set matched() {
    if (matching == null || planned.isEmpty()) {
      return planned;
    }
    if (matched == null) {
      Set found = new HashSet();
      SparkSession session = (SparkSession) SparkSession.active();
      Dataset files = Dataset$.MODULE$.ofRows(session, matching);
      for (Iterator it = Arrays.asList((Object[]) files.collect()).iterator(); it.hasNext();) {
        found.add(((Row) it.next()).getString(0));
      }
      // Spark may look at a newer version of the table here than the one whose files were planned.
      if (!planned.containsAll(found)) {
        throw new IllegalStateException("CommitConflictError: others changed the files of the table while the statement"
            + " looked for those that it replaces. Repeat the statement.");
      }
      matched = found;
    }
    return matched;
  }
}
