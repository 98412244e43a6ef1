package hms_iceberg.bridge.deletes;

import hms_iceberg.bridge.batches.BatchColumns;
import hms_iceberg.bridge.files.EqualityDeletes;
import hms_iceberg.bridge.files.FileTask;
import hms_iceberg.bridge.files.ReadSettings;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Which rows of each batch are deleted. Only files that have deletes get one. */
public final class DeletedRows {
  private final PositionSet positions;
  private final ColumnVector rowPositions;
  private final DeletedKeys.Probe[] probes;
  private final ColumnarBatch[] keys;
  private final long sequenceNumber;

  private DeletedRows(
      PositionSet positions, ColumnVector rowPositions, DeletedKeys.Probe[] probes, ColumnarBatch[] keys,
      long sequenceNumber) {
    this.positions = positions;
    this.rowPositions = rowPositions;
    this.probes = probes;
    this.keys = keys;
    this.sequenceNumber = sequenceNumber;
  }

  public static DeletedRows of(FileTask task, BatchColumns batchColumns, Configuration conf, ReadSettings settings)
      throws Exception {
    if (!task.hasDeletes()) {
      return null;
    }
    boolean byPosition = task.positionDeletes.length > 0;
    PositionSet positions = byPosition ? DeleteFiles.positions(task, conf, settings) : null;
    EqualityDeletes[] groups = task.equalityDeletes();
    int count = groups.length;
    DeletedKeys.Probe[] probes = new DeletedKeys.Probe[count];
    ColumnarBatch[] keys = new ColumnarBatch[count];
    for (int i = 0; i < count; i++) {
      keys[i] = new ColumnarBatch(batchColumns.vectors(groups[i].columns));
      probes[i] = DeleteFiles.keys(groups[i], conf, settings).probe(keys[i]);
    }
    return new DeletedRows(
        positions, byPosition ? batchColumns.positions() : null, probes, keys, task.sequenceNumber);
  }

  /** The numbers of the rows that are left, or null if all are. */
  public int[] live(int count) {
    int[] live = new int[count];
    int kept = positions == null ? all(live) : positions.live(rowPositions, live);
    for (int i = 0; i < probes.length; i++) {
      keys[i].setNumRows(count);
      kept = probes[i].keep(live, kept, sequenceNumber);
    }
    return kept == count ? null : Arrays.copyOf(live, kept);
  }

  private static int all(int[] live) {
    for (int i = 0; i < live.length; i++) {
      live[i] = i;
    }
    return live.length;
  }
}
