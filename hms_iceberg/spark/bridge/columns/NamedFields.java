package hms_iceberg.bridge.columns;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.wire.Json;
import org.apache.spark.sql.types.StructField;

/** A table's name mapping: which field a name of a file means, for files without field ids. */
public final class NamedFields {
  private NamedFields() {}

  /** The entry of a field among those of its struct; null if there is none. */
  public static JsonNode entry(JsonNode names, int id) {
    for (int i = 0; names != null && i < names.size(); i++) {
      JsonNode fieldId = Json.at(names, i).get("field-id");
      if (fieldId != null && fieldId.asInt() == id) {
        return Json.at(names, i);
      }
    }
    return null;
  }

  /**
   * Which of a file's names an entry means; -1 for none. Exactly as the mapping says, else whatever differs only in
   * case: Hive keeps its names in lower case.
   */
  public static int find(JsonNode entry, String[] names) {
    JsonNode mapped = entry == null ? null : entry.get("names");
    for (int i = 0; mapped != null && i < mapped.size(); i++) {
      for (int j = 0; j < names.length; j++) {
        if (names[j].equals(Json.at(mapped, i).asText())) {
          return j;
        }
      }
    }
    for (int i = 0; mapped != null && i < mapped.size(); i++) {
      for (int j = 0; j < names.length; j++) {
        if (names[j].equalsIgnoreCase(Json.at(mapped, i).asText())) {
          return j;
        }
      }
    }
    return -1;
  }

  /** The entries of the fields within a field. */
  public static JsonNode below(JsonNode names, StructField field) {
    if (names == null || !field.metadata().contains(FieldMetadata.ID)) {
      return null;
    }
    JsonNode entry = entry(names, (int) field.metadata().getLong(FieldMetadata.ID));
    return entry == null ? null : entry.get("fields");
  }

  /** The entries of the fields within the element of a list, or the key or value of a map. */
  public static JsonNode below(JsonNode names, String role) {
    JsonNode entry = entry(names, role);
    return entry == null ? null : entry.get("fields");
  }

  private static JsonNode entry(JsonNode names, String role) {
    for (int i = 0; names != null && i < names.size(); i++) {
      JsonNode own = Json.at(names, i).get("names");
      for (int j = 0; own != null && j < own.size(); j++) {
        if (role.equals(Json.at(own, j).asText())) {
          return Json.at(names, i);
        }
      }
    }
    return null;
  }
}
