package hms_iceberg.bridge.batches;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.FieldMetadata;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.files.FileTask;
import hms_iceberg.bridge.wire.Json;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns that no file has to have: where a row is, whether it is deleted, and its lineage. */
public final class MetadataColumns {
  public static final String FILE = "_file";
  public static final String POSITION = "_pos";
  public static final String DELETED = "_deleted";
  public static final String SPEC_ID = "_spec_id";
  public static final String PARTITION = "_partition";
  public static final String ROW_ID = "_row_id";
  public static final String LAST_UPDATED = "_last_updated_sequence_number";

  private MetadataColumns() {}

  static boolean isGenerated(StructField field) {
    if (!"metadata".equals(kind(field))) {
      return false;
    }
    String name = field.name();
    return FILE.equals(name) || POSITION.equals(name) || DELETED.equals(name) || SPEC_ID.equals(name)
        || PARTITION.equals(name);
  }

  private static String kind(StructField field) {
    return field.metadata().contains(FieldMetadata.KIND) ? field.metadata().getString(FieldMetadata.KIND) : null;
  }

  /** Without those that are never stored. */
  public static StructType stored(StructType wanted) {
    List fields = new ArrayList();
    for (int i = 0; i < wanted.fields().length; i++) {
      if (!isGenerated(wanted.fields()[i])) {
        fields.add(wanted.fields()[i]);
      }
    }
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  /** A column that is never stored. */
  static ColumnVector generated(StructField field, BatchColumns batchColumns, FileTask task) {
    if (FILE.equals(field.name())) {
      return Vectors.constant(StringType$.MODULE$, UTF8String.fromString(task.path));
    }
    if (SPEC_ID.equals(field.name())) {
      return Vectors.constant(IntegerType$.MODULE$, Integer.valueOf(task.specId));
    }
    if (PARTITION.equals(field.name())) {
      return partition((StructType) field.dataType(), task.partition);
    }
    return DELETED.equals(field.name()) ? batchColumns.marks() : batchColumns.positions();
  }

  /** The query may ask for some of its fields only. */
  private static ColumnVector partition(StructType type, String values) {
    JsonNode all = Json.read(values);
    ConstantColumnVector struct = new ConstantColumnVector(1, type);
    StructField[] fields = type.fields();
    if (fields.length == 0) { // of a table that never had partitions, as Iceberg's Java has it
      struct.setNull();
    }
    for (int i = 0; i < fields.length; i++) {
      long id = fields[i].metadata().getLong(FieldMetadata.ID);
      Object value = UnsupportedTypes.value(fields[i], all.get(String.valueOf(id)));
      struct.setChild(i, Vectors.constant(fields[i].dataType(), value));
    }
    return struct;
  }

  /** The column itself; one of the lineage is stored if a row was moved, and follows from the file elsewhere. */
  static ColumnVector inherited(StructField field, ColumnVector stored, BatchColumns batchColumns, FileTask task) {
    if ("metadata".equals(kind(field)) && ROW_ID.equals(field.name())) {
      return new Vectors.Inherited(stored, batchColumns.positions(), task.firstRowId);
    }
    if ("metadata".equals(kind(field)) && LAST_UPDATED.equals(field.name())) {
      return new Vectors.Inherited(stored, null, task.firstRowId < 0 ? -1 : task.sequenceNumber);
    }
    return stored;
  }
}
