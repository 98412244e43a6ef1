package hms_iceberg.bridge.columns;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;

/** Schemas put together. */
public final class Structs {
  private Structs() {}

  public static boolean has(StructType struct, String name) {
    return Arrays.asList(struct.fieldNames()).contains(name);
  }

  public static StructType concat(StructType left, StructType right) {
    List fields = new ArrayList(Arrays.asList(left.fields()));
    fields.addAll(Arrays.asList(right.fields()));
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  /** All fields of both, told apart by their ids; a struct in both gets the fields of both. */
  public static StructType merge(StructType left, StructType right) {
    List fields = new ArrayList(Arrays.asList(left.fields()));
    for (int i = 0; i < right.fields().length; i++) {
      StructField field = right.fields()[i];
      int at = indexOf(fields, field);
      if (at < 0) {
        fields.add(field);
      } else if (field.dataType() instanceof StructType) {
        StructField known = (StructField) fields.get(at);
        StructType both = merge((StructType) known.dataType(), (StructType) field.dataType());
        fields.set(at, new StructField(known.name(), both, true, known.metadata()));
      }
    }
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  private static int indexOf(List fields, StructField wanted) {
    for (int i = 0; i < fields.size(); i++) {
      StructField field = (StructField) fields.get(i);
      if (id(field) >= 0 && id(field) == id(wanted)) {
        return i;
      }
    }
    return -1;
  }

  private static long id(StructField field) {
    return field.metadata().contains(FieldMetadata.ID) ? field.metadata().getLong(FieldMetadata.ID) : -1;
  }

  /** What Spark asks for (perhaps fewer nested fields) with the ids of the table's fields, found by name. */
  public static DataType withIds(DataType asked, DataType known) {
    if (asked instanceof StructType && known instanceof StructType) {
      StructField[] fields = ((StructType) asked).fields();
      StructField[] named = new StructField[fields.length];
      for (int i = 0; i < fields.length; i++) {
        StructField match = field((StructType) known, fields[i].name());
        named[i] = match == null ? fields[i] : new StructField(
            match.name(), withIds(fields[i].dataType(), match.dataType()), true, match.metadata());
      }
      return new StructType(named);
    }
    if (asked instanceof ArrayType && known instanceof ArrayType) {
      return new ArrayType(withIds(((ArrayType) asked).elementType(), ((ArrayType) known).elementType()), true);
    }
    if (asked instanceof MapType && known instanceof MapType) {
      return new MapType(
          withIds(((MapType) asked).keyType(), ((MapType) known).keyType()),
          withIds(((MapType) asked).valueType(), ((MapType) known).valueType()), true);
    }
    // Spark asks for parts of a variant as for a struct, and its reader knows how to make them.
    return known instanceof VariantType ? asked : known;
  }

  private static StructField field(StructType struct, String name) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].name().equals(name)) {
        return fields[i];
      }
    }
    return null;
  }
}
