package hms_iceberg.bridge.rowlevel;

import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * The files that a copy-on-write operation replaces. Metadata says which files may hold rows that change; a query over
 * their rows says which do, so that no others are read as a whole and written anew. It runs once, before the first
 * file is read, for all scans of the operation: an UPDATE with a subquery has two.
 */
final class ReplacedFiles {
  private final DescribedTable table;
  private final Set planned = new HashSet();
  private LogicalPlan matching;
  private Set matched;

  ReplacedFiles(DescribedTable table) {
    this.table = table;
  }

  /**
   * Called when a scan of the operation is planned.
   *
   * @param paths the files that may hold such rows
   * @param matching gives the paths of those that do; null if all are replaced
   */
  synchronized void plan(List paths, LogicalPlan matching) {
    planned.addAll(paths);
    this.matching = matching;
  }

  /** The paths of all. */
  synchronized Set paths() {
    if (matching == null || planned.isEmpty()) {
      return planned;
    }
    if (matched == null) {
      QueryExecution query = SparkVersions.execution((SparkSession) SparkSession.active(), matching);
      Object[] paths = (Object[]) new Dataset(query, Encoders.STRING()).collect();
      matched = new HashSet(Arrays.asList(paths));
      if (!planned.containsAll(matched)) { // rows of a file that is replaced, but not read, would be lost
        throw Failures.of("CommitConflictError: cannot change rows of the table " + table.name() + ": rows match in"
            + " files that were not planned for them. Nothing was changed. Repeat the statement.", null);
      }
    }
    return matched;
  }
}
