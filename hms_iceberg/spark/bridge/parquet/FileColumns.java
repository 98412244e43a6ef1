package hms_iceberg.bridge.parquet;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.AbsentColumns;
import hms_iceberg.bridge.columns.ColumnView;
import hms_iceberg.bridge.columns.FieldMetadata;
import hms_iceberg.bridge.columns.NamedFields;
import hms_iceberg.bridge.columns.WidenedColumn;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampNTZType$;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.TimestampType$;
import org.apache.spark.sql.types.VariantType;

/**
 * Finds the wanted columns in one file: by field id, or by the table's name mapping if the file has no ids,
 * at every level of nesting. From that come the columns to read, under the file's own names, and the views that
 * make the wanted columns of them.
 */
public final class FileColumns {
  /** VariantMetadata.METADATA_KEY. */
  private static final String VARIANT_PART = "__VARIANT_METADATA_KEY";

  private final Configuration conf;
  private final MessageType file;
  private final boolean byId;
  private final JsonNode mapping;
  private final Map constants;

  FileColumns(Configuration conf, MessageType file, boolean byId, JsonNode mapping, Map constants) {
    this.conf = conf;
    this.file = file;
    this.byId = byId;
    this.mapping = mapping;
    this.constants = constants;
  }

  /**
   * The file's columns that hold the wanted ones, as a struct with the file's names. A column that the file lacks
   * and that is null comes under a name that no file has: Spark's reader makes a column of nulls of it.
   */
  StructType toRead(StructType wanted) {
    StructType found = toRead(wanted, file, mapping);
    StructField[] fields = wanted.fields();
    for (int i = 0; i < fields.length; i++) {
      if (isNullColumn(fields[i])) {
        found = found.add(new StructField(absent(fields[i]), bare(fields[i].dataType()), true, Metadata.empty()));
      }
    }
    return found;
  }

  private boolean isNullColumn(StructField field) {
    return field.metadata().contains(FieldMetadata.ID) && !(field.dataType() instanceof NullType)
        && find(field, file, mapping) == null && missing(field, true) == null;
  }

  private static String absent(StructField field) {
    return "_absent_" + field.metadata().getLong(FieldMetadata.ID) + "_of_iceberg";
  }

  /** Without the ids of what is nested: Spark's reader would look for ids in a file that has none, and refuse it. */
  private static DataType bare(DataType type) {
    if (type instanceof StructType && !isVariant(type)) {
      StructField[] fields = ((StructType) type).fields();
      StructField[] made = new StructField[fields.length];
      for (int i = 0; i < fields.length; i++) {
        made[i] = new StructField(fields[i].name(), bare(fields[i].dataType()), true, Metadata.empty());
      }
      return new StructType(made);
    }
    if (type instanceof ArrayType) {
      return new ArrayType(bare(((ArrayType) type).elementType()), true);
    }
    if (type instanceof MapType) {
      return new MapType(bare(((MapType) type).keyType()), bare(((MapType) type).valueType()), true);
    }
    return type;
  }

  private StructType toRead(StructType wanted, GroupType group, JsonNode names) {
    StructField[] fields = wanted.fields();
    List found = new ArrayList();
    for (int i = 0; i < fields.length; i++) {
      Type type = find(fields[i], group, names);
      if (type != null) {
        DataType read = typeToRead(fields[i], type, NamedFields.below(names, fields[i]));
        found.add(new StructField(type.getName(), read, true, Metadata.empty()));
      }
    }
    return new StructType((StructField[]) found.toArray(new StructField[0]));
  }

  private DataType typeToRead(StructField field, Type type, JsonNode names) {
    return typeToRead(field.dataType(), kind(field), type, names);
  }

  private DataType typeToRead(DataType wanted, String kind, Type type, JsonNode names) {
    if (isVariant(wanted)) {
      return wanted;
    }
    if (wanted instanceof StructType) {
      StructType struct = toRead((StructType) wanted, type.asGroupType(), names);
      return struct.fields().length == 0 ? anyField(type.asGroupType()) : struct;
    }
    if (wanted instanceof ArrayType) {
      return new ArrayType(
          typeToRead(((ArrayType) wanted).elementType(), null, Layout.element(type), NamedFields.below(names, "element")), true);
    }
    if (wanted instanceof MapType) {
      GroupType entry = Layout.entry(type);
      return new MapType(
          typeToRead(((MapType) wanted).keyType(), null, entry.getType(0), NamedFields.below(names, "key")),
          typeToRead(((MapType) wanted).valueType(), null, entry.getType(1), NamedFields.below(names, "value")), true);
    }
    if (isUuid(wanted, type)) {
      return BinaryType$.MODULE$;
    }
    return simpleToRead(wanted, type);
  }

  private static DataType simpleToRead(DataType wanted, Type type) {
    return WidenedColumn.typeToRead(timestampToRead(wanted, type), type);
  }

  /** A variant, or parts of one: a struct whose fields have no ids, but say in their metadata what they are of it. */
  private static boolean isVariant(DataType wanted) {
    if (wanted instanceof VariantType) {
      return true;
    }
    StructField[] fields = wanted instanceof StructType ? ((StructType) wanted).fields() : new StructField[0];
    return fields.length > 0 && fields[0].metadata().contains(VARIANT_PART);
  }

  /** Sixteen fixed bytes under a wanted string are a UUID: no string is ever stored like that. */
  private static boolean isUuid(DataType wanted, Type type) {
    return wanted instanceof org.apache.spark.sql.types.StringType && type.isPrimitive()
        && type.asPrimitiveType().getPrimitiveTypeName() == PrimitiveType.PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY
        && type.asPrimitiveType().getTypeLength() == 16;
  }

  /** With or without a zone, both are microseconds since 1970: Spark only has to be told which it will find. */
  private static DataType timestampToRead(DataType wanted, Type type) {
    if (!(wanted instanceof TimestampType) && !(wanted instanceof TimestampNTZType) || !type.isPrimitive()) {
      return wanted;
    }
    if (type.asPrimitiveType().getPrimitiveTypeName() == PrimitiveType.PrimitiveTypeName.INT96) {
      return TimestampType$.MODULE$;
    }
    LogicalTypeAnnotation annotation = type.getLogicalTypeAnnotation();
    if (annotation instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation) {
      boolean utc = ((LogicalTypeAnnotation.TimestampLogicalTypeAnnotation) annotation).isAdjustedToUTC();
      return utc ? (DataType) TimestampType$.MODULE$ : (DataType) TimestampNTZType$.MODULE$;
    }
    return wanted;
  }

  /** A struct none of whose wanted fields is in the file: some field must be read to learn where it is null. */
  private StructType anyField(GroupType group) {
    MessageType only = new MessageType(group.getName(), new Type[] {group.getType(0)});
    return new ParquetToSparkSchemaConverter(conf).convert(only);
  }

  /** How each wanted column is made from a batch of the columns that are read. */
  ColumnView[] views(StructType wanted, StructType read) {
    return views(wanted, file, mapping, read, true);
  }

  private ColumnView[] views(StructType wanted, GroupType group, JsonNode names, StructType read, boolean top) {
    StructField[] fields = wanted.fields();
    ColumnView[] views = new ColumnView[fields.length];
    for (int i = 0; i < fields.length; i++) {
      Type type = find(fields[i], group, names);
      if (type == null && top && isNullColumn(fields[i])) {
        views[i] = ColumnView.same();
        views[i].ordinal = read.fieldIndex(absent(fields[i]));
      } else if (type == null) {
        views[i] = ColumnView.constant(fields[i].dataType(), missing(fields[i], top));
      } else {
        int at = read.fieldIndex(type.getName());
        views[i] = view(
            fields[i].dataType(), kind(fields[i]), type, NamedFields.below(names, fields[i]), read.fields()[at].dataType());
        views[i].ordinal = at;
      }
    }
    return views;
  }

  private ColumnView view(DataType wanted, String kind, Type type, JsonNode names, DataType read) {
    if (isVariant(wanted)) {
      return ColumnView.same();
    }
    if (wanted instanceof StructType) {
      ColumnView[] children =
          views((StructType) wanted, type.asGroupType(), names, (StructType) read, false);
      return ColumnView.struct((StructType) wanted, (StructType) read, children);
    }
    if (wanted instanceof ArrayType) {
      ColumnView element = view(
          ((ArrayType) wanted).elementType(), null, Layout.element(type), NamedFields.below(names, "element"),
          ((ArrayType) read).elementType());
      return ColumnView.array(wanted, element);
    }
    if (wanted instanceof MapType) {
      GroupType entry = Layout.entry(type);
      ColumnView key = view(
          ((MapType) wanted).keyType(), null, entry.getType(0), NamedFields.below(names, "key"), ((MapType) read).keyType());
      ColumnView value = view(
          ((MapType) wanted).valueType(), null, entry.getType(1), NamedFields.below(names, "value"),
          ((MapType) read).valueType());
      return ColumnView.map(wanted, key, value);
    }
    return isUuid(wanted, type) ? ColumnView.uuid() : WidenedColumn.of(wanted, read);
  }

  private Object missing(StructField field, boolean top) {
    return AbsentColumns.value(field, top, constants);
  }

  /** The names of the table's columns (quoted as in Spark's filters) to those of the file, if comparable. */
  public void names(StructType wanted, java.util.Map found) {
    names(wanted, file, mapping, "", "", found);
  }

  private void names(
      StructType wanted, GroupType group, JsonNode names, String prefix, String filePrefix, Map found) {
    StructField[] fields = wanted.fields();
    for (int i = 0; i < fields.length; i++) {
      Type type = find(fields[i], group, names);
      if (type == null) {
        continue;
      }
      String name = prefix + quoted(fields[i].name());
      String fileName = filePrefix + quoted(type.getName());
      if (fields[i].dataType() instanceof StructType) {
        if (!type.isPrimitive()) {
          names((StructType) fields[i].dataType(), type.asGroupType(), NamedFields.below(names, fields[i]), name + ".",
              fileName + ".", found);
        }
      } else if (type.isPrimitive() && !isUuid(fields[i].dataType(), type)
          && simpleToRead(fields[i].dataType(), type).equals(fields[i].dataType())) {
        found.put(name, fileName);
      }
    }
  }

  public static String quoted(String name) {
    return org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded(name);
  }

  private static String kind(StructField field) {
    return field.metadata().contains(FieldMetadata.KIND) ? field.metadata().getString(FieldMetadata.KIND) : null;
  }

  /** The file's column of a table's column; null if it has none. */
  public Type find(StructField field) {
    return find(field, file, mapping);
  }

  private Type find(StructField field, GroupType group, JsonNode names) {
    if (!field.metadata().contains(FieldMetadata.ID)) {
      return null;
    }
    int id = (int) field.metadata().getLong(FieldMetadata.ID);
    return byId ? findById(group, id) : findByName(group, NamedFields.entry(names, id));
  }

  private static Type findById(GroupType group, int id) {
    for (int i = 0; i < group.getFieldCount(); i++) {
      Type type = group.getType(i);
      if (type.getId() != null && type.getId().intValue() == id) {
        return type;
      }
    }
    return null;
  }

  private static Type findByName(GroupType group, JsonNode entry) {
    String[] names = new String[group.getFieldCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = group.getFieldName(i);
    }
    int found = NamedFields.find(entry, names);
    return found < 0 ? null : group.getType(found);
  }
}
