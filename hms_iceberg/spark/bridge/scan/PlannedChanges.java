package hms_iceberg.bridge.scan;

import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.read.FileReader;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.ExecutorConf;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** Files of which all rows have one change each, and rows as Arrow. */
final class PlannedChanges {
  private static final StructType NONE = new StructType();

  private final ScanFiles[] plans;
  private final List arrow;

  PlannedChanges(Answer answer) {
    this.arrow = ArrowParts.of(answer.header());
    byte[][] plans = answer.takeBlobs(answer.header().get("plans").asInt());
    this.plans = new ScanFiles[plans.length];
    for (int i = 0; i < plans.length; i++) {
      this.plans[i] = new ScanFiles(new Answer(plans[i]));
    }
  }

  /** All plans have the same columns that come from elsewhere than from files. */
  private FileReader.Wanted columns(StructType wanted) {
    return FileReader.Wanted.of(wanted, plans.length == 0 ? NONE : plans[0].partitionSchema());
  }

  FileReader reader(ExecutorConf conf, StructType wanted, ReadSettings settings) {
    String nameMapping = plans.length == 0 ? null : plans[0].nameMapping();
    return new FileReader(
        conf, columns(wanted), nameMapping, ColumnsToRead.NO_FILTERS, null, false, settings);
  }

  InputPartition[] partitions(SparkSession session, StructType wanted) {
    StructType constants = columns(wanted).partition;
    long bytes = 0;
    int files = 0;
    for (int i = 0; i < plans.length; i++) {
      bytes += plans[i].sizeInBytes();
      files += plans[i].count();
    }
    long most = PlannedScan.maxSplitBytes(session, bytes, files);
    List splits = new ArrayList();
    for (int i = 0; i < plans.length; i++) {
      plans[i].send(session.sparkContext());
      addSplits(splits, plans[i], constants, most);
    }
    Collections.sort(splits, new LongestFirst());
    List partitions = new ArrayList(CollectionConverters.asJava(
        FilePartition$.MODULE$.getFilePartitions(session, CollectionTools.seq(splits), most)));
    partitions.addAll(arrow);
    return (InputPartition[]) partitions.toArray(new InputPartition[0]);
  }

  private static void addSplits(List splits, ScanFiles plan, StructType constants, long most) {
    for (int i = 0; i < plan.count(); i++) {
      for (long start = 0; start < plan.size(i); start += most) {
        splits.add(plan.split(i, constants, start, Math.min(most, plan.size(i) - start)));
      }
    }
  }

  static final class LongestFirst implements Comparator {
    public int compare(Object left, Object right) {
      return Long.compare(((PartitionedFile) right).length(), ((PartitionedFile) left).length());
    }
  }
}
