package hms_iceberg.bridge.read;

import hms_iceberg.bridge.batches.DeletedMarks;
import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.columns.WidenedColumn;
import hms_iceberg.bridge.deletes.DeletedRows;
import hms_iceberg.bridge.files.FileBatches;
import java.io.Closeable;
import java.io.IOException;
import java.util.Iterator;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;

/** The live rows of one split, or all of them with the deleted ones marked, as batches or one by one. */
final class Rows extends AbstractIterator implements Closeable {
  private FileBatches file;
  private ColumnarBatch batch;
  private DeletedRows deleted;
  private final DeletedMarks marks;
  private final boolean inBatches;
  private ColumnarBatch next;
  private Iterator rows;
  private boolean closed;

  Rows(FileBatches file, ColumnarBatch batch, DeletedRows deleted, DeletedMarks marks, boolean inBatches) {
    this.file = file;
    this.batch = batch;
    this.deleted = deleted;
    this.marks = marks;
    this.inBatches = inBatches;
  }

  public boolean hasNext() {
    if (inBatches) {
      return next != null || advance();
    }
    while (rows == null || !rows.hasNext()) {
      next = null;
      if (!advance()) {
        return false;
      }
      rows = next.rowIterator();
    }
    return true;
  }

  public Object next() {
    if (!hasNext()) {
      throw new java.util.NoSuchElementException();
    }
    if (inBatches) {
      ColumnarBatch given = next;
      next = null;
      return given;
    }
    return rows.next();
  }

  /** The next batch that has a row to show. */
  private boolean advance() {
    try {
      while (!closed && file.next()) {
        int count = file.rows();
        int[] live = deleted == null ? null : deleted.live(count);
        if (marks != null) {
          marks.set(count, live);
          live = null;
        }
        if (live == null) {
          batch.setNumRows(count);
          next = WidenedColumn.copied(batch);
          return true;
        }
        if (live.length > 0) {
          next = select(live);
          return true;
        }
      }
    } catch (IOException e) {
      org.apache.spark.unsafe.Platform.throwException(e);
    }
    close();
    return false;
  }

  private ColumnarBatch select(int[] live) {
    ColumnVector[] vectors = new ColumnVector[batch.numCols()];
    for (int i = 0; i < vectors.length; i++) {
      vectors[i] = new Vectors.Selected(batch.column(i), live);
    }
    return new ColumnarBatch(vectors, live.length);
  }

  public void close() {
    if (!closed) {
      closed = true;
      try {
        file.close();
      } catch (IOException e) {
        org.apache.spark.unsafe.Platform.throwException(e);
      } finally {
        // The task holds on to this until it ends, and may read thousands of files.
        file = null;
        batch = null;
        deleted = null;
      }
    }
  }
}
