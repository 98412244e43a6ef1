package hms_iceberg.bridge;

import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The columns of a batch as they are read, and what is laid over them. Spark reuses one batch for a whole file. */
final class BatchColumns {
  private final ColumnarBatch batch;
  private final StructType read;
  private final StructType fileColumns;
  private final FileColumns columns;
  private final FileTask task;
  private final DeletedMarks marks;

  /** The marks are null if deleted rows are left out. */
  BatchColumns(
      ColumnarBatch batch, StructType read, StructType fileColumns, FileColumns columns, FileTask task,
      DeletedMarks marks) {
    this.batch = batch;
    this.read = read;
    this.fileColumns = fileColumns;
    this.columns = columns;
    this.task = task;
    this.marks = marks;
  }

  /** The positions of the batch's rows in the file. */
  ColumnVector positions() {
    return batch.column(read.fieldIndex(FileReader.POSITION));
  }

  /** Which of the batch's rows are deleted. */
  ColumnVector marks() {
    return marks;
  }

  /** The columns of some wanted schema, in its order. */
  ColumnVector[] vectors(StructType wanted) {
    StructField[] fields = wanted.fields();
    ColumnView[] views = columns.views(MetadataColumns.stored(wanted), fileColumns);
    ColumnVector[] vectors = new ColumnVector[fields.length];
    int stored = 0;
    for (int i = 0; i < fields.length; i++) {
      if (MetadataColumns.isGenerated(fields[i])) {
        vectors[i] = MetadataColumns.generated(fields[i], this, task);
      } else {
        ColumnView view = views[stored++];
        ColumnVector own = view.of(view.ordinal < 0 ? null : batch.column(view.ordinal));
        vectors[i] = MetadataColumns.inherited(fields[i], own, this, task);
      }
    }
    return vectors;
  }

  /** What Spark gets: the wanted columns, then the partition's. It is the batch itself if nothing is changed. */
  ColumnarBatch output(StructType wanted, StructType partition) {
    ColumnVector[] vectors = vectors(wanted);
    ColumnVector[] all = new ColumnVector[vectors.length + partition.fields().length];
    System.arraycopy(vectors, 0, all, 0, vectors.length);
    int firstPartition = read.fields().length;
    for (int i = vectors.length; i < all.length; i++) {
      all[i] = batch.column(firstPartition + i - vectors.length);
    }
    boolean same = all.length == batch.numCols();
    for (int i = 0; same && i < all.length; i++) {
      same = all[i] == batch.column(i);
    }
    return same ? batch : new ColumnarBatch(all);
  }
}
