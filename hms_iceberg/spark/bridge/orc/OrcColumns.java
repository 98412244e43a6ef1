package hms_iceberg.bridge.orc;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.AbsentColumns;
import hms_iceberg.bridge.columns.FieldMetadata;
import hms_iceberg.bridge.columns.NamedFields;
import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.parquet.FileColumns;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DateColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Finds the wanted columns in one ORC file: by the attribute of their field id, by the table's name mapping if the file
 * has no ids, or by their order if there is neither; and makes ORC's vectors for them and Spark's over those.
 */
final class OrcColumns {
  private static final String ID = "iceberg.id";
  private static final int MOST_DIGITS = TypeDescription.MAX_DECIMAL64_PRECISION;

  private final FilePart part;
  private final TypeDescription file;
  private final JsonNode mapping;
  private final boolean byId;
  private final Map constants;
  private final boolean[] included;
  private final int batchSize;
  /** ORC's vectors by the number of their column. */
  private final Map vectors = new HashMap();
  private final List floating = new ArrayList();
  /** Stands for fields of structs that are not read. */
  private final ColumnVector unread = new LongColumnVector(1);

  OrcColumns(FilePart part, TypeDescription file, JsonNode mapping, Map constants, int batchSize) {
    this.part = part;
    this.file = file;
    this.byId = hasIds(file);
    this.mapping = byId ? null : mapping;
    this.constants = constants;
    this.batchSize = batchSize;
    this.included = new boolean[file.getMaximumId() + 1];
    this.included[0] = true;
  }

  private static boolean hasIds(TypeDescription type) {
    List children = type.getChildren();
    for (int i = 0; children != null && i < children.size(); i++) {
      TypeDescription child = (TypeDescription) children.get(i);
      if (child.getAttributeValue(ID) != null || hasIds(child)) {
        return true;
      }
    }
    return false;
  }

  /** Marks the file's columns that hold the wanted ones. */
  void include(StructType wanted) {
    include(wanted, file, mapping, true);
  }

  private void include(StructType wanted, TypeDescription struct, JsonNode names, boolean top) {
    StructField[] fields = wanted.fields();
    for (int i = 0; i < fields.length; i++) {
      TypeDescription type = find(fields[i], struct, names, top);
      if (type != null) {
        include(fields[i].dataType(), type, NamedFields.below(names, fields[i]));
      }
    }
  }

  private void include(DataType wanted, TypeDescription type, JsonNode names) {
    included[type.getId()] = true;
    if (wanted instanceof StructType && is(type, TypeDescription.Category.STRUCT)) {
      include((StructType) wanted, type, names, false);
    } else if (wanted instanceof ArrayType && is(type, TypeDescription.Category.LIST)) {
      include(((ArrayType) wanted).elementType(), child(type, 0), NamedFields.below(names, "element"));
    } else if (wanted instanceof MapType && is(type, TypeDescription.Category.MAP)) {
      include(((MapType) wanted).keyType(), child(type, 0), NamedFields.below(names, "key"));
      include(((MapType) wanted).valueType(), child(type, 1), NamedFields.below(names, "value"));
    }
  }

  boolean[] included() {
    return included;
  }

  /** ORC's vectors for the columns of the file that are read; the others have none. */
  public ColumnVector[] batch() {
    ColumnVector[] made = new ColumnVector[file.getChildren().size()];
    for (int i = 0; i < made.length; i++) {
      made[i] = included[child(file, i).getId()] ? vector(child(file, i)) : null;
    }
    return made;
  }

  private ColumnVector vector(TypeDescription type) {
    if (!included[type.getId()]) {
      return unread;
    }
    ColumnVector made = made(type);
    vectors.put(Integer.valueOf(type.getId()), made);
    return made;
  }

  private ColumnVector made(TypeDescription type) {
    if (is(type, TypeDescription.Category.STRUCT)) {
      ColumnVector[] fields = new ColumnVector[type.getChildren().size()];
      for (int i = 0; i < fields.length; i++) {
        fields[i] = vector(child(type, i));
      }
      return new StructColumnVector(batchSize, fields);
    }
    if (is(type, TypeDescription.Category.LIST)) {
      return new ListColumnVector(batchSize, vector(child(type, 0)));
    }
    if (is(type, TypeDescription.Category.MAP)) {
      return new MapColumnVector(batchSize, vector(child(type, 0)), vector(child(type, 1)));
    }
    if (is(type, TypeDescription.Category.DECIMAL)) {
      return type.getPrecision() <= MOST_DIGITS
          ? (ColumnVector) new Decimal64ColumnVector(batchSize, type.getPrecision(), type.getScale())
          : new DecimalColumnVector(batchSize, type.getPrecision(), type.getScale());
    }
    if (isTime(type)) {
      return new TimestampColumnVector(batchSize);
    }
    if (isText(type) || is(type, TypeDescription.Category.BINARY)) {
      return new BytesColumnVector(batchSize);
    }
    if (is(type, TypeDescription.Category.DATE)) {
      return new DateColumnVector(batchSize);
    }
    if (is(type, TypeDescription.Category.FLOAT) || is(type, TypeDescription.Category.DOUBLE)) {
      ColumnVector made = new DoubleColumnVector(batchSize);
      floating.add(made);
      return made;
    }
    return new LongColumnVector(batchSize);
  }

  /** Of a batch that has been read: ORC takes 0.0 and -0.0 for one value that is repeated, though it has read each. */
  void keepSigns() {
    for (int i = 0; i < floating.size(); i++) {
      DoubleColumnVector vector = (DoubleColumnVector) floating.get(i);
      if (vector.isRepeating && vector.noNulls && vector.vector[0] == 0) {
        vector.isRepeating = false;
      }
    }
  }

  private static TypeDescription child(TypeDescription type, int i) {
    return (TypeDescription) type.getChildren().get(i);
  }

  private static boolean is(TypeDescription type, TypeDescription.Category category) {
    return type.getCategory() == category;
  }

  private static boolean isTime(TypeDescription type) {
    return is(type, TypeDescription.Category.TIMESTAMP) || is(type, TypeDescription.Category.TIMESTAMP_INSTANT);
  }

  private static boolean isText(TypeDescription type) {
    return is(type, TypeDescription.Category.STRING) || is(type, TypeDescription.Category.VARCHAR)
        || is(type, TypeDescription.Category.CHAR);
  }

  /** The file's column of a table's column; null if it has none. */
  private TypeDescription find(StructField field, TypeDescription struct, JsonNode names, boolean top) {
    if (!field.metadata().contains(FieldMetadata.ID) || field.dataType() instanceof NullType) {
      return null;
    }
    int id = (int) field.metadata().getLong(FieldMetadata.ID);
    List children = struct.getChildren();
    if (byId) {
      for (int i = 0; i < children.size(); i++) {
        if (String.valueOf(id).equals(child(struct, i).getAttributeValue(ID))) {
          return child(struct, i);
        }
      }
      return null;
    }
    if (mapping == null) { // as files were before they had ids
      return top && id >= 1 && id <= children.size() ? child(struct, id - 1) : null;
    }
    List found = struct.getFieldNames();
    int at = NamedFields.find(NamedFields.entry(names, id), (String[]) found.toArray(new String[0]));
    return at < 0 ? null : child(struct, at);
  }

  /** Spark's vectors for the wanted columns; their fields are those to read, or some of them. */
  public org.apache.spark.sql.vectorized.ColumnVector[] columns(StructType wanted) throws IOException {
    return columns(wanted, file, mapping, "", true);
  }

  private org.apache.spark.sql.vectorized.ColumnVector[] columns(
      StructType wanted, TypeDescription struct, JsonNode names, String prefix, boolean top) throws IOException {
    StructField[] fields = wanted.fields();
    org.apache.spark.sql.vectorized.ColumnVector[] made =
        new org.apache.spark.sql.vectorized.ColumnVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      TypeDescription type = find(fields[i], struct, names, top);
      made[i] = type == null
          ? Vectors.constant(fields[i].dataType(), AbsentColumns.value(fields[i], top, constants))
          : column(fields[i].dataType(), type, NamedFields.below(names, fields[i]), prefix + fields[i].name());
    }
    return made;
  }

  private org.apache.spark.sql.vectorized.ColumnVector column(
      DataType wanted, TypeDescription type, JsonNode names, String path) throws IOException {
    Object read = vectors.get(Integer.valueOf(type.getId()));
    if (wanted instanceof StructType && read instanceof StructColumnVector) {
      return new OrcVectors.Struct(
          wanted, (StructColumnVector) read, columns((StructType) wanted, type, names, path + ".", false));
    }
    if (wanted instanceof ArrayType && read instanceof ListColumnVector) {
      return new OrcVectors.Lists(wanted, (ListColumnVector) read, column(
          ((ArrayType) wanted).elementType(), child(type, 0), NamedFields.below(names, "element"), path + ".element"));
    }
    if (wanted instanceof MapType && read instanceof MapColumnVector) {
      return new OrcVectors.Maps(wanted, (MapColumnVector) read,
          column(((MapType) wanted).keyType(), child(type, 0), NamedFields.below(names, "key"), path + ".key"),
          column(((MapType) wanted).valueType(), child(type, 1), NamedFields.below(names, "value"), path + ".value"));
    }
    org.apache.spark.sql.vectorized.ColumnVector simple = simple(wanted, type, read);
    if (simple == null) {
      throw FileBatches.mismatch(part, path, wanted.sql(), type.toString());
    }
    return simple;
  }

  /** Null if the file's values cannot become the wanted ones. */
  private static org.apache.spark.sql.vectorized.ColumnVector simple(
      DataType wanted, TypeDescription type, Object read) {
    boolean instant = wanted instanceof TimestampType || wanted instanceof TimestampNTZType;
    if (read instanceof DateColumnVector) {
      return wanted instanceof DateType ? new OrcVectors.Whole(wanted, (LongColumnVector) read)
          : instant ? OrcVectors.Multiplied.days(wanted, (LongColumnVector) read) : null;
    }
    if (read instanceof Decimal64ColumnVector) {
      return widens(type, wanted) ? new OrcVectors.Digits(wanted, (LongColumnVector) read, type.getScale()) : null;
    }
    if (read instanceof DecimalColumnVector) {
      return widens(type, wanted) ? new OrcVectors.Decimals(wanted, (DecimalColumnVector) read) : null;
    }
    if (read instanceof LongColumnVector) {
      return whole(wanted, type, (LongColumnVector) read);
    }
    if (read instanceof DoubleColumnVector) {
      boolean fits = wanted instanceof DoubleType
          || (wanted instanceof FloatType && is(type, TypeDescription.Category.FLOAT));
      return fits ? new OrcVectors.Floating(wanted, (DoubleColumnVector) read) : null;
    }
    if (read instanceof TimestampColumnVector) {
      return instant ? new OrcVectors.Time(wanted, (TimestampColumnVector) read) : null;
    }
    if (read instanceof BytesColumnVector && (wanted instanceof StringType || wanted instanceof BinaryType)) {
      BytesColumnVector bytes = (BytesColumnVector) read;
      boolean uuid = wanted instanceof StringType && "UUID".equals(type.getAttributeValue("iceberg.binary-type"));
      return uuid ? (org.apache.spark.sql.vectorized.ColumnVector) new OrcVectors.Uuid(bytes)
          : new OrcVectors.Bytes(wanted, bytes);
    }
    return null;
  }

  private static org.apache.spark.sql.vectorized.ColumnVector whole(
      DataType wanted, TypeDescription type, LongColumnVector read) {
    boolean truth = is(type, TypeDescription.Category.BOOLEAN);
    boolean isLong = is(type, TypeDescription.Category.LONG);
    if (wanted instanceof BooleanType ? truth : !truth && (wanted instanceof LongType
        || (wanted instanceof IntegerType && !isLong))) {
      return new OrcVectors.Whole(wanted, read);
    }
    // Spark counts the nanoseconds of a day; not all its versions have the type.
    return isLong && wanted.typeName().startsWith("time(") ? new OrcVectors.Multiplied(wanted, read, 1000) : null;
  }

  private static boolean widens(TypeDescription type, DataType wanted) {
    if (!(wanted instanceof DecimalType)) {
      return false;
    }
    DecimalType decimal = (DecimalType) wanted;
    return type.getScale() <= decimal.scale()
        && type.getPrecision() - type.getScale() <= decimal.precision() - decimal.scale();
  }

  /** The names of the table's columns (quoted as in Spark's filters) to those of the file, if statistics can be compared. */
  public void names(StructType wanted, Map found) {
    names(wanted, file, mapping, "", "", true, found);
  }

  private void names(
      StructType wanted, TypeDescription struct, JsonNode names, String prefix, String filePrefix, boolean top,
      Map found) {
    StructField[] fields = wanted.fields();
    for (int i = 0; i < fields.length; i++) {
      TypeDescription type = find(fields[i], struct, names, top);
      if (type == null) {
        continue;
      }
      String own = (String) struct.getFieldNames().get(struct.getChildren().indexOf(type));
      if (own.indexOf('`') >= 0) {
        continue;
      }
      String name = prefix + FileColumns.quoted(fields[i].name());
      String fileName = filePrefix + "`" + own + "`";
      DataType kind = fields[i].dataType();
      if (kind instanceof StructType && is(type, TypeDescription.Category.STRUCT)) {
        names((StructType) kind, type, NamedFields.below(names, fields[i]), name + ".", fileName + ".", false, found);
      } else if (OrcSearch.isComparable(kind, type)) {
        found.put(name, fileName);
      }
    }
  }
}
