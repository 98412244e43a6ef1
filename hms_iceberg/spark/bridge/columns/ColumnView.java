package hms_iceberg.bridge.columns;

import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Makes a wanted column out of the column that was read, without copying values. */
public abstract class ColumnView {
  /** Which of the columns (or of the fields of a struct) that were read; negative for a constant. */
  public int ordinal = -1;

  public abstract ColumnVector of(ColumnVector read);

  /** Whether the column is handed on as it was read. */
  boolean isSame() {
    return false;
  }

  public static ColumnView same() {
    return new Same();
  }

  public static ColumnView uuid() {
    return new Uuid();
  }

  public static ColumnView constant(DataType type, Object value) {
    return new Constant(type, value);
  }

  public static ColumnView struct(StructType type, StructType read, ColumnView[] children) {
    boolean same = children.length == read.fields().length;
    for (int i = 0; same && i < children.length; i++) {
      same = children[i].ordinal == i && children[i].isSame();
    }
    return same ? (ColumnView) new Same() : new Nested(type, children);
  }

  public static ColumnView array(DataType type, ColumnView element) {
    element.ordinal = 0;
    return element.isSame() ? (ColumnView) new Same() : new Nested(type, new ColumnView[] {element});
  }

  public static ColumnView map(DataType type, ColumnView key, ColumnView value) {
    key.ordinal = 0;
    value.ordinal = 1;
    return key.isSame() && value.isSame()
        ? (ColumnView) new Same() : new Nested(type, new ColumnView[] {key, value});
  }

  public static final class Same extends ColumnView {
    public ColumnVector of(ColumnVector read) {
      return read;
    }

    boolean isSame() {
      return true;
    }
  }

  public static final class Uuid extends ColumnView {
    public ColumnVector of(ColumnVector read) {
      return new Vectors.UuidVector(read);
    }
  }

  public static final class Constant extends ColumnView {
    private final ConstantColumnVector vector;

    public Constant(DataType type, Object value) {
      this.vector = Vectors.constant(type, value);
    }

    public ColumnVector of(ColumnVector read) {
      return vector;
    }
  }

  static final class Nested extends ColumnView {
    private final DataType type;
    private final ColumnView[] children;

    Nested(DataType type, ColumnView[] children) {
      this.type = type;
      this.children = children;
    }

    public ColumnVector of(ColumnVector read) {
      ColumnVector[] vectors = new ColumnVector[children.length];
      for (int i = 0; i < children.length; i++) {
        vectors[i] = children[i].of(children[i].ordinal < 0 ? null : read.getChild(children[i].ordinal));
      }
      return new Vectors.NestedVector(type, (WritableColumnVector) read, vectors);
    }
  }
}
