package hms_iceberg.bridge.columns;

import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Values;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Values of columns that a file does not hold. */
public final class AbsentColumns {
  private AbsentColumns() {}

  /** What a column has that the file lacks: its partition's value, else its default, else null. */
  public static Object value(StructField field, boolean top, Map constants) {
    if (top && field.metadata().contains(FieldMetadata.ID)) {
      Integer id = Integer.valueOf((int) field.metadata().getLong(FieldMetadata.ID));
      if (constants.containsKey(id)) {
        return constants.get(id);
      }
    }
    if (!field.metadata().contains(FieldMetadata.DEFAULT)) {
      return null;
    }
    try {
      return Values.of(field.dataType(), Json.read(field.metadata().getString(FieldMetadata.DEFAULT)));
    } catch (RuntimeException e) {
      throw new IllegalStateException("The default of the column " + field.name() + " cannot be used: "
          + e.getMessage(), e);
    }
  }

  /** The columns of a partition. */
  public static ColumnVector[] partition(StructType schema, InternalRow values) {
    StructField[] fields = schema.fields();
    ColumnVector[] vectors = new ColumnVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      Object value = values.isNullAt(i) ? null : values.get(i, fields[i].dataType());
      vectors[i] = Vectors.constant(fields[i].dataType(), value);
    }
    return vectors;
  }
}
