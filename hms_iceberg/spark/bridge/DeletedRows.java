package hms_iceberg.bridge;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Which rows of each batch are deleted. Only files that have deletes get one. */
final class DeletedRows {
  private final PositionSet positions;
  private final ColumnVector rowPositions;
  private final EqualityFilter[] filters;

  private DeletedRows(PositionSet positions, ColumnVector rowPositions, EqualityFilter[] filters) {
    this.positions = positions;
    this.rowPositions = rowPositions;
    this.filters = filters;
  }

  static DeletedRows of(FileTask task, Layering layering, Configuration conf, ReadSettings settings)
      throws Exception {
    if (!task.hasDeletes()) {
      return null;
    }
    PositionSet positions = null;
    ColumnVector rowPositions = null;
    if (task.positionDeletes.length > 0) {
      positions = DeleteFiles.positions(task, conf, settings);
      rowPositions = layering.positions();
    }
    EqualityFilter[] filters = new EqualityFilter[task.equalityDeletes.length];
    for (int i = 0; i < filters.length; i++) {
      EqualityDeletes group = task.equalityDeletes[i];
      filters[i] = new EqualityFilter(
          DeleteFiles.keys(group, conf, settings), group.columns, layering.vectors(group.columns),
          task.sequenceNumber);
    }
    return new DeletedRows(positions, rowPositions, filters);
  }

  /** The numbers of the rows that are left, or null where all are. */
  int[] live(int count) {
    int[] live = new int[count];
    int kept = 0;
    for (int i = 0; i < filters.length; i++) {
      filters[i].startBatch(count);
    }
    for (int row = 0; row < count; row++) {
      boolean deleted = positions != null && positions.contains(rowPositions.getLong(row));
      for (int i = 0; !deleted && i < filters.length; i++) {
        deleted = filters[i].deletes(row);
      }
      if (!deleted) {
        live[kept++] = row;
      }
    }
    return kept == count ? null : Arrays.copyOf(live, kept);
  }
}
