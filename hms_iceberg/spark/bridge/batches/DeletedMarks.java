package hms_iceberg.bridge.batches;

import hms_iceberg.bridge.columns.Vectors;
import java.util.Arrays;
import org.apache.spark.sql.types.BooleanType$;

/** The column _deleted: whether each row of the batch that was read last is deleted. */
public final class DeletedMarks extends Vectors.Delegating {
  private boolean[] marks = new boolean[0];

  public DeletedMarks() {
    super(BooleanType$.MODULE$, null);
  }

  /** Of so many rows these are left; null is all. */
  public void set(int count, int[] live) {
    if (marks.length < count) {
      marks = new boolean[count];
    }
    Arrays.fill(marks, live != null);
    for (int i = 0; live != null && i < live.length; i++) {
      marks[live[i]] = false;
    }
  }

  public int row(int rowId) {
    return rowId;
  }

  public boolean hasNull() {
    return false;
  }

  public int numNulls() {
    return 0;
  }

  public boolean isNullAt(int rowId) {
    return false;
  }

  public boolean getBoolean(int rowId) {
    return marks[rowId];
  }
}
