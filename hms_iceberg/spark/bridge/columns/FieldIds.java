package hms_iceberg.bridge.columns;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.wire.Json;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;

/**
 * What a field's metadata tells of lists and maps, whose elements, keys and values are no fields to Spark. A path is a
 * letter for each step down, "" for the field itself: "ev" is the value of the map that is a list's element.
 */
public final class FieldIds {
  /** {"e": {"id": 4}, "ev": {"id": 6, "length": 16}}; the length is -1 for a UUID. */
  private static final String KEY = "iceberg.nested";

  private final JsonNode nested;

  public FieldIds(Metadata metadata) {
    this.nested = metadata.contains(KEY) ? Json.read(metadata.getString(KEY)) : null;
  }

  public static int of(StructField field) {
    return (int) field.metadata().getLong(FieldMetadata.ID);
  }

  public int id(String path) {
    return nested.get(path).get("id").asInt();
  }

  /** The number of bytes that a value has; -1 for a UUID, 0 for what has no fixed length. */
  public int fixed(String path) {
    JsonNode found = nested == null ? null : nested.get(path);
    return found == null || !found.has("length") ? 0 : found.get("length").asInt();
  }

  public boolean hasFixed() {
    return nested != null && !nested.findValues("length").isEmpty();
  }
}
