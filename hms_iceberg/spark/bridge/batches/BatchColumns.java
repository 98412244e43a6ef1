package hms_iceberg.bridge.batches;

import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FileTask;
import java.io.IOException;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The columns of a file's batches: those that are stored, and what is laid over them. */
public final class BatchColumns {
  private final FileBatches batches;
  private final FileTask task;
  private final DeletedMarks marks;

  /** The marks are null if deleted rows are left out. */
  public BatchColumns(FileBatches batches, FileTask task, DeletedMarks marks) {
    this.batches = batches;
    this.task = task;
    this.marks = marks;
  }

  /** The positions of the batch's rows in the file. */
  public ColumnVector positions() {
    return batches.positions();
  }

  /** Which of the batch's rows are deleted. */
  public ColumnVector marks() {
    return marks;
  }

  /** The columns of some wanted schema, in its order. */
  public ColumnVector[] vectors(StructType wanted) throws IOException {
    StructField[] fields = wanted.fields();
    ColumnVector[] inFile = batches.columns(MetadataColumns.stored(wanted));
    ColumnVector[] vectors = new ColumnVector[fields.length];
    int stored = 0;
    for (int i = 0; i < fields.length; i++) {
      vectors[i] = MetadataColumns.isGenerated(fields[i])
          ? MetadataColumns.generated(fields[i], this, task)
          : MetadataColumns.inherited(fields[i], inFile[stored++], this, task);
    }
    return vectors;
  }

  /** What Spark gets: the wanted columns, then the partition's. */
  public ColumnarBatch output(StructType wanted) throws IOException {
    ColumnVector[] vectors = vectors(wanted);
    ColumnVector[] partition = batches.partition();
    ColumnVector[] all = new ColumnVector[vectors.length + partition.length];
    System.arraycopy(vectors, 0, all, 0, vectors.length);
    System.arraycopy(partition, 0, all, vectors.length, partition.length);
    return new ColumnarBatch(all);
  }
}
