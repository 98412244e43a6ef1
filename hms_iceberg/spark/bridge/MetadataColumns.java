package hms_iceberg.bridge;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns that no file has to have: where a row is, and its lineage. */
final class MetadataColumns {
  static final String FILE = "_file";
  static final String POSITION = "_pos";
  static final String SPEC_ID = "_spec_id";
  static final String ROW_ID = "_row_id";
  static final String LAST_UPDATED = "_last_updated_sequence_number";

  private MetadataColumns() {}

  private static boolean isGenerated(StructField field) {
    if (!"metadata".equals(kind(field))) {
      return false;
    }
    String name = field.name();
    return FILE.equals(name) || POSITION.equals(name) || SPEC_ID.equals(name);
  }

  private static String kind(StructField field) {
    return field.metadata().contains(FileColumns.KIND) ? field.metadata().getString(FileColumns.KIND) : null;
  }

  /** Without those that are never stored. */
  static StructType stored(StructType wanted) {
    List fields = new ArrayList();
    for (int i = 0; i < wanted.fields().length; i++) {
      if (!isGenerated(wanted.fields()[i])) {
        fields.add(wanted.fields()[i]);
      }
    }
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  /** The column itself, or for a metadata column what stands for it in this file. */
  static ColumnVector of(StructField field, ColumnVector stored, Layering layering, FileTask task) {
    if (!"metadata".equals(kind(field))) {
      return stored;
    }
    String name = field.name();
    if (FILE.equals(name)) {
      return Vectors.constant(StringType$.MODULE$, UTF8String.fromString(task.path));
    }
    if (SPEC_ID.equals(name)) {
      return Vectors.constant(IntegerType$.MODULE$, Integer.valueOf(task.specId));
    }
    if (POSITION.equals(name)) {
      return layering.positions();
    }
    if (ROW_ID.equals(name)) {
      return new Vectors.Inherited(stored, layering.positions(), task.firstRowId);
    }
    if (LAST_UPDATED.equals(name)) {
      long inherited = task.firstRowId < 0 ? -1 : task.sequenceNumber;
      return new Vectors.Inherited(stored, null, inherited);
    }
    return stored;
  }
}
