package hms_iceberg.bridge.rowlevel;

import hms_iceberg.bridge.deletes.PositionSet;
import hms_iceberg.bridge.write.RowWriters;
import hms_iceberg.bridge.write.TaskFiles;
import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes the new rows of one task, and collects the positions of deleted ones in bitmaps: a bitmap is never larger than
 * one bit for each row of a file, in whatever order the positions come.
 */
final class ChangedRows implements DeltaWriter {
  private final TaskFiles files;
  private final LineageColumns lineage;
  private final String refusal;
  private final Map deleted = new HashMap();
  private UTF8String lastPath;
  private PositionSet lastPositions;

  /** Without files, rows are only deleted. */
  private ChangedRows(TaskFiles files, LineageColumns lineage, String refusal) {
    this.files = files;
    this.lineage = lineage;
    this.refusal = refusal;
  }

  public void delete(Object metadata, Object id) {
    if (refusal != null) {
      throw new UnsupportedOperationException(refusal);
    }
    UTF8String path = ((InternalRow) id).getUTF8String(0);
    if (!path.equals(lastPath)) {
      lastPath = path.copy();
      lastPositions = (PositionSet) deleted.get(lastPath);
      if (lastPositions == null) {
        lastPositions = new PositionSet();
        deleted.put(lastPath, lastPositions);
      }
    }
    lastPositions.add(((InternalRow) id).getLong(1));
  }

  public void update(Object metadata, Object id, Object row) throws IOException {
    delete(metadata, id);
    reinsert(metadata, row);
  }

  public void reinsert(Object metadata, Object row) throws IOException {
    files.write(lineage.joined((InternalRow) metadata, (InternalRow) row));
  }

  public void insert(Object row) throws IOException {
    reinsert(null, row);
  }

  public void write(Object row) throws IOException {
    insert(row);
  }

  public WriterCommitMessage commit() throws IOException {
    List written = files == null ? Collections.emptyList() : files.finish();
    TaskFiles.report(written);
    return new WrittenChanges(written, deleted);
  }

  public void abort() {
    if (files != null) {
      files.abort();
    }
  }

  public void close() {
    if (files != null) {
      files.close();
    }
  }

  static final class Writers implements DeltaWriterFactory, Serializable {
    private final RowWriters rows;
    private final LineageColumns lineage;
    private final String refusal;

    Writers(RowWriters rows, LineageColumns lineage, String refusal) {
      this.rows = rows;
      this.lineage = lineage;
      this.refusal = refusal;
    }

    public DeltaWriter createWriter(int partitionId, long taskId) {
      return new ChangedRows(rows == null ? null : rows.files(partitionId, taskId, 0), lineage.ofChanges(), refusal);
    }
  }
}
