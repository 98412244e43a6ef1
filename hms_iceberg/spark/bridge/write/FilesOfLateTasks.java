package hms_iceberg.bridge.write;

import hms_iceberg.bridge.output.WrittenFile;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.util.AccumulatorV2;
import org.apache.spark.util.CollectionAccumulator;
import scala.Option;

/**
 * The files of tasks that ended well, and of which a cancelled write does not hear: Spark drops what a task tells the write
 * if its job has ended meanwhile. Listeners hear of the end of every task, and of what it put into accumulators.
 */
final class FilesOfLateTasks extends SparkListener {
  /** The tasks of a job that was cancelled have long ended by then. */
  private static final long MS_OF_LATE_TASKS = 600000;

  private final SparkContext context;
  private final Configuration conf;
  private final CollectionAccumulator locations = new CollectionAccumulator();
  private final List heard = new ArrayList();
  private boolean committed;
  private long abortedAt;

  FilesOfLateTasks(SparkContext context, Configuration conf) {
    this.context = context;
    this.conf = conf;
    locations.register(context, Option.empty(), true); // tasks that are killed at their very end tell too
    context.addSparkListener(this);
  }

  /** Where tasks put the locations of the files that they have finished. */
  CollectionAccumulator locations() {
    return locations;
  }

  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    TaskMetrics metrics = end.taskMetrics();
    if (metrics != null && !committed) {
      scala.collection.Iterator updates = metrics._externalAccums().iterator();
      while (updates.hasNext()) {
        AccumulatorV2 update = (AccumulatorV2) updates.next();
        if (update.id() == locations.id()) {
          heard.addAll((List) update.value());
        }
      }
    }
    if (abortedAt > 0) {
      delete();
    }
  }

  /** The write has heard of all its tasks, and their files are the table's. Holds no lock: Spark waits for listeners here. */
  public void committed() {
    context.removeSparkListener(this);
    forget();
  }

  /** An event may still be under way: what the table has is never deleted. */
  private synchronized void forget() {
    committed = true;
    heard.clear();
  }

  /** Deletes what tasks have written, and what others that are about to end will have written. */
  public synchronized void aborted() {
    abortedAt = System.currentTimeMillis();
    delete();
  }

  private void delete() {
    for (int i = 0; i < heard.size(); i++) {
      WrittenFile.delete((String) heard.get(i), conf);
    }
    heard.clear();
    if (System.currentTimeMillis() - abortedAt > MS_OF_LATE_TASKS) {
      context.removeSparkListener(this);
    }
  }
}
