package hms_iceberg.bridge.avro;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.AbsentColumns;
import hms_iceberg.bridge.columns.FieldMetadata;
import hms_iceberg.bridge.columns.NamedFields;
import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryDecoder;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Finds the wanted columns in one Avro file, as OrcColumns does in an ORC file, and decodes records into them. A field of
 * a record that is not wanted is skipped.
 */
final class AvroColumns {
  private static final String ID = "field-id";

  private final FilePart part;
  private final ColumnsToRead wanted;
  private final AvroValues values;
  private final boolean byId;
  private final WritableColumnVector[] vectors;
  private final ColumnVector[] constants;
  /** What is done with each field of a record, in the file's order, and into which vector it goes. */
  private final AvroValue[] steps;
  private final WritableColumnVector[] targets;

  AvroColumns(FilePart part, Schema file, Map marks, ColumnsToRead wanted, int batchSize) throws IOException {
    this.part = part;
    this.wanted = wanted;
    this.values = new AvroValues(marks);
    this.byId = hasIds(file, 0);
    StructField[] fields = wanted.stored.fields();
    this.vectors = new WritableColumnVector[fields.length];
    this.constants = new ColumnVector[fields.length];
    List found = file.getFields();
    this.steps = new AvroValue[found.size()];
    this.targets = new WritableColumnVector[found.size()];
    JsonNode names = byId ? null : wanted.nameMapping;
    for (int i = 0; i < fields.length; i++) {
      int at = find(fields[i], found, names, true);
      if (at < 0) {
        constants[i] = Vectors.constant(fields[i].dataType(), AbsentColumns.value(fields[i], true, wanted.constants));
        continue;
      }
      vectors[i] = new OnHeapColumnVector(batchSize, fields[i].dataType());
      targets[at] = vectors[i];
      steps[at] = value(
          fields[i].dataType(), ((Schema.Field) found.get(at)).schema(), NamedFields.below(names, fields[i]),
          fields[i].name());
    }
    for (int i = 0; i < steps.length; i++) {
      if (steps[i] == null) {
        steps[i] = new AvroValues.Skipped(((Schema.Field) found.get(i)).schema());
      }
    }
  }

  private static boolean hasIds(Schema schema, int depth) {
    if (schema.getType() == Schema.Type.UNION) {
      for (int i = 0; i < schema.getTypes().size(); i++) {
        if (hasIds((Schema) schema.getTypes().get(i), depth)) {
          return true;
        }
      }
      return false;
    }
    if (schema.getType() == Schema.Type.ARRAY) {
      return schema.getObjectProp("element-id") != null || hasIds(schema.getElementType(), depth + 1);
    }
    if (schema.getType() == Schema.Type.MAP) {
      return schema.getObjectProp("key-id") != null || hasIds(schema.getValueType(), depth + 1);
    }
    List fields = schema.getType() == Schema.Type.RECORD && depth < 100 ? schema.getFields() : new java.util.ArrayList();
    for (int i = 0; i < fields.size(); i++) {
      Schema.Field field = (Schema.Field) fields.get(i);
      if (field.getObjectProp(ID) != null || hasIds(field.schema(), depth + 1)) {
        return true;
      }
    }
    return false;
  }

  /** Which of a record's fields is a wanted one; -1 for none. */
  private int find(StructField field, List fields, JsonNode names, boolean top) {
    if (!field.metadata().contains(FieldMetadata.ID) || field.dataType() instanceof NullType) {
      return -1;
    }
    int id = (int) field.metadata().getLong(FieldMetadata.ID);
    if (byId) {
      for (int i = 0; i < fields.size(); i++) {
        Object own = ((Schema.Field) fields.get(i)).getObjectProp(ID);
        if (own != null && String.valueOf(id).equals(own.toString())) {
          return i;
        }
      }
      return -1;
    }
    if (wanted.nameMapping == null) { // as files were before they had ids
      return top && id >= 1 && id <= fields.size() ? id - 1 : -1;
    }
    String[] known = new String[fields.size()];
    for (int i = 0; i < known.length; i++) {
      known[i] = ((Schema.Field) fields.get(i)).name();
    }
    return NamedFields.find(NamedFields.entry(names, id), known);
  }

  /** How values of a schema become those of a wanted type. */
  private AvroValue value(DataType type, Schema schema, JsonNode names, String path) throws IOException {
    if (schema.getType() == Schema.Type.UNION) {
      return union(type, schema, names, path);
    }
    boolean isMap = schema.getType() == Schema.Type.ARRAY && "map".equals(schema.getProp("logicalType"));
    if (type instanceof StructType && schema.getType() == Schema.Type.RECORD) {
      return struct((StructType) type, schema, names, path);
    }
    if (type instanceof ArrayType && schema.getType() == Schema.Type.ARRAY && !isMap) {
      return new AvroValues.Lists(value(
          ((ArrayType) type).elementType(), schema.getElementType(), NamedFields.below(names, "element"),
          path + ".element"));
    }
    if (type instanceof MapType && (isMap || schema.getType() == Schema.Type.MAP)) {
      Schema key = isMap ? entry(schema, 0) : Schema.create(Schema.Type.STRING);
      Schema item = isMap ? entry(schema, 1) : schema.getValueType();
      return new AvroValues.Maps(
          isMap,
          value(((MapType) type).keyType(), key, NamedFields.below(names, "key"), path + ".key"),
          value(((MapType) type).valueType(), item, NamedFields.below(names, "value"), path + ".value"));
    }
    AvroValue simple = values.simple(type, schema);
    if (simple == null) {
      throw FileBatches.mismatch(part, path, type.sql(), schema.toString());
    }
    return simple;
  }

  private static Schema entry(Schema map, int field) {
    return ((Schema.Field) map.getElementType().getFields().get(field)).schema();
  }

  /** Of null and one type. */
  private AvroValue union(DataType type, Schema schema, JsonNode names, String path) throws IOException {
    List branches = schema.getTypes();
    int nulls = -1;
    AvroValue only = null;
    for (int i = 0; i < branches.size(); i++) {
      Schema branch = (Schema) branches.get(i);
      if (branch.getType() == Schema.Type.NULL) {
        nulls = i;
      } else if (only == null) {
        only = value(type, branch, names, path);
      } else {
        throw new IOException("UnsupportedError: Cannot read " + part.path + ": the column '" + path
            + "' is a union of several types, which are not supported.");
      }
    }
    boolean struct = type instanceof StructType;
    return new AvroValues.Optional(only == null ? new AvroValues.Nothing(struct) : only, nulls, struct);
  }

  private AvroValue struct(StructType type, Schema record, JsonNode names, String path) throws IOException {
    List found = record.getFields();
    StructField[] fields = type.fields();
    AvroValue[] made = new AvroValue[found.size()];
    int[] ordinals = new int[found.size()];
    Map absent = new HashMap();
    for (int i = 0; i < fields.length; i++) {
      int at = find(fields[i], found, names, false);
      if (at < 0) {
        Object value = AbsentColumns.value(fields[i], false, wanted.constants);
        absent.put(Integer.valueOf(i), new AvroValues.Constant(fields[i].dataType(), value));
      } else {
        ordinals[at] = i;
        made[at] = value(
            fields[i].dataType(), ((Schema.Field) found.get(at)).schema(), NamedFields.below(names, fields[i]),
            path + "." + fields[i].name());
      }
    }
    for (int i = 0; i < made.length; i++) {
      if (made[i] == null) {
        ordinals[i] = -1;
        made[i] = new AvroValues.Skipped(((Schema.Field) found.get(i)).schema());
      }
    }
    return new AvroValues.Struct(made, ordinals, absent);
  }

  /** Forgets the rows that were read. */
  public void reset() {
    for (int i = 0; i < vectors.length; i++) {
      if (vectors[i] != null) {
        vectors[i].reset();
      }
    }
  }

  /** Reads so many records. */
  public void read(BinaryDecoder in, int count) throws IOException {
    for (int row = 0; row < count; row++) {
      for (int i = 0; i < steps.length; i++) {
        steps[i].read(in, targets[i]);
      }
    }
  }

  /** The columns of a schema whose columns, or parts of them, are read. */
  public ColumnVector[] columns(StructType asked) {
    StructField[] fields = asked.fields();
    ColumnVector[] found = new ColumnVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      int at = position(fields[i], wanted.stored);
      found[i] = vectors[at] == null ? constants[at]
          : part(fields[i].dataType(), wanted.stored.fields()[at].dataType(), vectors[at]);
    }
    return found;
  }

  /** A column of which perhaps only some fields are asked for. */
  private static ColumnVector part(DataType asked, DataType read, WritableColumnVector vector) {
    if (asked.equals(read) || !(asked instanceof StructType)) {
      return vector;
    }
    StructField[] fields = ((StructType) asked).fields();
    ColumnVector[] children = new ColumnVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      int at = position(fields[i], (StructType) read);
      children[i] = part(fields[i].dataType(), ((StructType) read).fields()[at].dataType(), vector.getChild(at));
    }
    return new Vectors.NestedVector(asked, vector, children);
  }

  private static int position(StructField field, StructType struct) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      boolean named = field.metadata().contains(FieldMetadata.ID) && fields[i].metadata().contains(FieldMetadata.ID);
      if (named ? field.metadata().getLong(FieldMetadata.ID) == fields[i].metadata().getLong(FieldMetadata.ID)
          : field.name().equals(fields[i].name())) {
        return i;
      }
    }
    throw new IllegalStateException("The column " + field.name() + " is not read.");
  }

  public void close() {
    for (int i = 0; i < vectors.length; i++) {
      if (vectors[i] != null) {
        vectors[i].close();
      }
    }
  }
}
