package hms_iceberg.bridge.columns;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Shapes;
import hms_iceberg.bridge.wire.Values;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Columns of types that this Spark cannot hold. A table is not unreadable for having one: it stands in the schema with a
 * comment and as binary, and only a query that uses it is refused. (Of void, Spark would fold comparisons to null, and
 * the query would seem not to use it.)
 */
public final class UnsupportedTypes {
  private static final String TYPE = "iceberg.unsupported";
  private static final String PREFIX = "iceberg:";
  private static final String TYPES = "org.apache.spark.sql.types.";
  private static final List SHAPES = Arrays.asList(new String[] {"geometry", "geography"});
  /** What a session takes timestamps in nanoseconds for, of which Spark has no type that is ready for use. */
  private static final String NANOSECONDS = "spark.hms_iceberg.nanoseconds";
  private static final List NANOSECONDS_AS = Arrays.asList(new String[] {"micros", "bigint"});

  /** Iceberg's types that not every version of Spark has, and Spark's classes for them. */
  private static final String[][] NEW = {
    {"time", TYPES + "TimeType"}, {"variant", TYPES + "VariantType"}, {"geometry", TYPES + "GeometryType"},
    {"geography", TYPES + "GeographyType"},
    // Python workers read and write such files instead
    {"shapes in parquet", "org.apache.spark.sql.execution.datasources.parquet.ParquetVectorUpdaterFactory$GeometryUpdater"}
  };
  private static final List LACKING = new ArrayList();

  static {
    for (int i = 0; i < NEW.length; i++) {
      if (Shapes.absent(NEW[i][1], "") != null) {
        LACKING.add(NEW[i][0]);
      }
    }
  }

  private UnsupportedTypes() {}

  /** The names of Iceberg's types that this Spark lacks, and what is put in their place. */
  public static JsonNode lacking() {
    List all = new ArrayList(LACKING);
    for (int i = 0; i < SHAPES.size(); i++) {
      if (isLacking((String) SHAPES.get(i)) && !all.contains(SHAPES.get(i))) {
        all.add(SHAPES.get(i));
      }
    }
    String nanoseconds = SQLConf.get().getConfString(NANOSECONDS, null);
    if (nanoseconds != null && !NANOSECONDS_AS.contains(nanoseconds)) {
      throw Failures.of("ConfigurationError: the setting " + NANOSECONDS + " is \"" + nanoseconds
          + "\"; it may be micros or bigint.", null);
    }
    if (nanoseconds != null) {
      all.add("nanoseconds as " + nanoseconds);
    }
    return Json.MAPPER.valueToTree(all);
  }

  /** Spark 4.1 has shapes, but refuses every query of a table that has one until a setting allows them. */
  private static boolean isLacking(String kind) {
    if (LACKING.contains(kind) || !SHAPES.contains(kind)) {
      return LACKING.contains(kind);
    }
    try {
      return "false".equals(SQLConf.get().getConfString("spark.sql.geospatial.enabled"));
    } catch (NoSuchElementException e) {
      return false;
    }
  }

  /** A struct from its JSON, in which the type of a column that Spark cannot hold is "iceberg:" and Iceberg's name. */
  public static StructType parse(JsonNode struct) {
    JsonNode own = struct.deepCopy();
    replace(own);
    return (StructType) DataType.fromJson(own.toString());
  }

  private static void replace(JsonNode struct) {
    JsonNode fields = struct.get("fields");
    for (int i = 0; i < fields.size(); i++) {
      ObjectNode field = (ObjectNode) Json.at(fields, i);
      String missing = missing(field.get("type"));
      if (missing != null) {
        field.put("type", "binary");
        ObjectNode metadata = field.withObject("/metadata");
        String comment = metadata.has("comment") ? metadata.get("comment").asText() + " " : "";
        metadata.put("comment", comment + "(Iceberg type " + missing + ", which Spark cannot hold)");
        metadata.put(TYPE, missing);
      }
    }
  }

  /** The type that Spark lacks in a type; those within structs are replaced where they are. */
  private static String missing(JsonNode type) {
    if (type.isTextual()) {
      String name = type.asText();
      int end = name.indexOf('(');
      String kind = end < 0 ? name : name.substring(0, end);
      if (isLacking(kind)) {
        return "time".equals(kind) ? kind : name;
      }
      return name.startsWith(PREFIX) ? name.substring(PREFIX.length()) : null;
    }
    String kind = type.get("type").asText();
    if ("struct".equals(kind)) {
      replace(type);
      return null;
    }
    if ("array".equals(kind)) {
      return missing(type.get("elementType"));
    }
    String key = missing(type.get("keyType"));
    return key == null ? missing(type.get("valueType")) : key;
  }

  /** A value of a type, both as JSON; null if Spark cannot hold it. */
  public static Object value(JsonNode type, JsonNode value) {
    JsonNode own = type.deepCopy();
    return missing(own) == null ? Values.of(DataType.fromJson(own.toString()), value) : null;
  }

  /** A field's value; null if Spark cannot hold it. */
  public static Object value(StructField field, JsonNode value) {
    return field.metadata().contains(TYPE) ? null : Values.of(field.dataType(), value);
  }

  /** Refuses a query that uses such a column. */
  public static void refuse(String table, StructType schema, List columns) {
    StructField[] known = schema.fields();
    for (int i = 0; i < columns.size(); i++) {
      String name = ((AttributeReference) columns.get(i)).name();
      for (int j = 0; j < known.length; j++) {
        if (known[j].name().equals(name) && known[j].metadata().contains(TYPE)) {
          refuse(table, known[j], "");
        }
      }
    }
  }

  /** Refuses a query for which these columns are read. */
  public static void refuse(String table, StructType read) {
    refuse(table, read, "");
  }

  private static void refuse(String table, StructField field, String prefix) {
    String name = prefix + field.name();
    if (field.metadata().contains(TYPE)) {
      throw Failures.of("UnsupportedError: Cannot read the column " + name + " of the table " + table
          + " from Spark: its type is " + field.metadata().getString(TYPE) + ", which this Spark cannot hold. Leave the"
          + " column out, or read it with the Python API (load_table(...).scan().to_arrow()).", null);
    }
    refuse(table, field.dataType(), name + ".");
  }

  private static void refuse(String table, DataType type, String prefix) {
    if (type instanceof StructType) {
      StructField[] fields = ((StructType) type).fields();
      for (int i = 0; i < fields.length; i++) {
        refuse(table, fields[i], prefix);
      }
    } else if (type instanceof ArrayType) {
      refuse(table, ((ArrayType) type).elementType(), prefix + "element.");
    } else if (type instanceof MapType) {
      refuse(table, ((MapType) type).keyType(), prefix + "key.");
      refuse(table, ((MapType) type).valueType(), prefix + "value.");
    }
  }
}
