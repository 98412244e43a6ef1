package hms_iceberg.bridge.parquet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import hms_iceberg.bridge.wire.Json;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.compat.RowGroupFilter;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.filter2.predicate.Operators;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Leaves out row groups by comparisons of values within shredded variants: those whose statistics say that no value of
 * the shredded type matches, and that there is none of another type. Pages are not left out by them.
 */
public final class VariantGroups {
  private static final Pattern PATH = Pattern.compile("\\$(\\.[A-Za-z_][A-Za-z0-9_]*)+");

  private VariantGroups() {}

  /** The comparisons of values within variants that must all hold, as JSON; null if there are none. */
  public static String tests(JsonNode filter) {
    ArrayNode found = Json.MAPPER.createArrayNode();
    if (filter != null) {
      collect(filter, found);
    }
    return found.isEmpty() ? null : found.toString();
  }

  private static void collect(JsonNode filter, ArrayNode found) {
    if ("and".equals(filter.get("op").asText())) {
      collect(Json.at(filter.get("children"), 0), found);
      collect(Json.at(filter.get("children"), 1), found);
    } else if (filter.has("variant") && filter.has("value") && filter.get("column").size() == 1) {
      found.add(filter);
    }
  }

  /** The footer without the row groups that hold no row of which all tests are true. */
  public static ParquetMetadata kept(ParquetMetadata footer, String tests, StructType wanted, FileColumns columns) {
    JsonNode all = Json.read(tests);
    List groups = footer.getBlocks();
    for (int i = 0; i < all.size(); i++) {
      FilterPredicate test = predicate(Json.at(all, i), wanted, columns);
      if (test != null) {
        groups = RowGroupFilter.filterRowGroups(
            FilterCompat.get(test), groups, footer.getFileMetaData().getSchema());
      }
    }
    return new ParquetMetadata(footer.getFileMetaData(), groups);
  }

  /** Null if the file's statistics say nothing of the value. */
  private static FilterPredicate predicate(JsonNode test, StructType wanted, FileColumns columns) {
    String path = test.get("variant").get("path").asText();
    Type at = column(Json.at(test.get("column"), 0).asText(), wanted, columns);
    if (at == null || at.isPrimitive() || at.getName().indexOf('.') >= 0 || !PATH.matcher(path).matches()) {
      return null;
    }
    String name = at.getName();
    String[] steps = path.substring(2).split("\\.");
    for (int i = 0; i < steps.length; i++) {
      Type objects = field(at, "typed_value");
      at = objects == null || objects.isPrimitive() ? null : field(objects, steps[i]);
      if (at == null || at.isPrimitive()) {
        return null;
      }
      name += ".typed_value." + steps[i];
    }
    Type typed = field(at, "typed_value");
    FilterPredicate matches = typed == null || !typed.isPrimitive()
        ? null : comparison(test, name + ".typed_value", typed.asPrimitiveType());
    if (matches == null || field(at, "value") == null) {
      return matches;
    }
    return FilterApi.or(matches, FilterApi.notEq(FilterApi.binaryColumn(name + ".value"), (Binary) null));
  }

  private static Type column(String name, StructType wanted, FileColumns columns) {
    StructField[] fields = wanted.fields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].name().equals(name)) {
        return columns.find(fields[i]);
      }
    }
    return null;
  }

  private static Type field(Type type, String name) {
    GroupType group = type.asGroupType();
    return group.containsField(name) ? group.getType(name) : null;
  }

  /** The comparison of values of one type; null if those of the file are cast to another, or the cast may fail. */
  private static FilterPredicate comparison(JsonNode test, String column, PrimitiveType type) {
    String op = test.get("op").asText();
    String kind = test.get("variant").get("type").asText();
    JsonNode value = test.get("value");
    PrimitiveTypeName stored = type.getPrimitiveTypeName();
    LogicalTypeAnnotation annotation = type.getLogicalTypeAnnotation();
    boolean isWhole = annotation == null || annotation instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation;
    if (stored == PrimitiveTypeName.INT32 && value.canConvertToInt()
        && ((isWhole && ("int".equals(kind) || "bigint".equals(kind)))
            || (annotation instanceof LogicalTypeAnnotation.DateLogicalTypeAnnotation && "date".equals(kind)))) {
      return comparison(op, FilterApi.intColumn(column), Integer.valueOf(value.asInt()));
    }
    boolean fits = "bigint".equals(kind) || ("int".equals(kind) && !test.get("variant").get("raises").asBoolean());
    if (stored == PrimitiveTypeName.INT64 && value.canConvertToLong() && ((isWhole && fits) || isTime(annotation, kind))) {
      return comparison(op, FilterApi.longColumn(column), Long.valueOf(value.asLong()));
    }
    if (stored == PrimitiveTypeName.BINARY && value.isTextual() && "string".equals(kind)
        && annotation instanceof LogicalTypeAnnotation.StringLogicalTypeAnnotation) {
      return comparison(op, FilterApi.binaryColumn(column), Binary.fromString(value.asText()));
    }
    return null;
  }

  private static boolean isTime(LogicalTypeAnnotation annotation, String kind) {
    if (!(annotation instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation)) {
      return false;
    }
    LogicalTypeAnnotation.TimestampLogicalTypeAnnotation time =
        (LogicalTypeAnnotation.TimestampLogicalTypeAnnotation) annotation;
    return time.getUnit() == LogicalTypeAnnotation.TimeUnit.MICROS
        && (time.isAdjustedToUTC() ? "timestamp" : "timestamp_ntz").equals(kind);
  }

  private static FilterPredicate comparison(String op, Operators.Column column, Comparable value) {
    if ("eq".equals(op)) {
      return FilterApi.eq(column, value);
    }
    if ("lt".equals(op)) {
      return FilterApi.lt(column, value);
    }
    if ("lt-eq".equals(op)) {
      return FilterApi.ltEq(column, value);
    }
    if ("gt".equals(op)) {
      return FilterApi.gt(column, value);
    }
    return "gt-eq".equals(op) ? FilterApi.gtEq(column, value) : null;
  }
}
