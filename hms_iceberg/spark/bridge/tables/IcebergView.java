package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.TableSource;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** An Iceberg view, as Spark's analyzer finds it by its name. ExpandViews puts its query in its place. */
public final class IcebergView implements Table {
  private final TableSource source;
  private final String catalog;
  private final String location;
  private final JsonNode described;

  public IcebergView(TableSource source, String catalog, String location) {
    this.source = source;
    this.catalog = catalog;
    this.location = location;
    ObjectNode question = Planner.question("view");
    question.put("name", source.name());
    question.put("metadata_location", location);
    source.addCatalog(question);
    this.described = source.planner.ask(question).header();
  }

  /** Null if it is asked for by what only tables have: a metadata table, or a version. */
  public static Table of(
      TableSource source, String catalog, String location, boolean isPart, String version, Long asOfMicros) {
    if (version != null || asOfMicros != null) {
      throw Failures.of("UnsupportedError: " + source.name() + " is a view, which has no versions to read. Name the"
          + " version in its query, or query its tables.", null);
    }
    return isPart ? null : new IcebergView(source, catalog, location);
  }

  public static RuntimeException notWritable(String name, String what) {
    return Failures.of("UnsupportedError: " + what + " from Spark is not supported for the Iceberg view " + name
        + ". Nothing was changed. Use the Python catalog instead (load_catalog(...).load_view(\"" + name + "\") and then"
        + " replace, set_properties, remove_properties).", null);
  }

  public String name() {
    return source.name();
  }

  public String shownName() {
    return source.shownName();
  }

  public StructType schema() {
    return DescribedTable.withoutIds((StructType) DataType.fromJson(described.get("schema").toString()));
  }

  public Map properties() {
    return new LinkedHashMap((Map) Json.MAPPER.convertValue(described.get("properties"), Map.class));
  }

  public Set capabilities() {
    return Collections.emptySet();
  }

  /** What statements show: as of a table, and what the view itself keeps. */
  public Map shownProperties() {
    return (Map) Json.MAPPER.convertValue(described.get("shown_properties"), Map.class);
  }

  /** The names of the query's columns, if an engine left them. */
  public String[] queryColumns() {
    return (String[]) Json.MAPPER.convertValue(described.get("query_columns"), String[].class);
  }

  public String sql() {
    return described.get("sql").asText();
  }

  /** The catalog, and then the namespace, of the tables that the query names without. */
  public String[] defaults() {
    JsonNode namespace = described.get("namespace");
    String[] defaults = new String[namespace.size() + 1];
    defaults[0] = described.get("catalog").isNull() ? catalog : described.get("catalog").asText();
    for (int i = 1; i < defaults.length; i++) {
      defaults[i] = Json.at(namespace, i - 1).asText();
    }
    return defaults;
  }

  public boolean equals(Object other) {
    return other instanceof IcebergView && name().equals(((IcebergView) other).name())
        && location.equals(((IcebergView) other).location);
  }

  public int hashCode() {
    return location.hashCode();
  }

  public String toString() {
    return "Iceberg view " + name();
  }
}
