package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;

/** JSON, on the driver and on executors. */
public final class Json {
  public static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** The i-th element; Janino does not see that get(int) of a JsonNode is a JsonNode. */
  public static JsonNode at(JsonNode array, int i) {
    return (JsonNode) array.get(i);
  }

  public static String[] texts(JsonNode array) {
    String[] texts = new String[array.size()];
    for (int i = 0; i < texts.length; i++) {
      texts[i] = at(array, i).asText();
    }
    return texts;
  }

  public static JsonNode read(String text) {
    try {
      return text == null ? null : MAPPER.readTree(text);
    } catch (IOException e) {
      throw new IllegalStateException("Not JSON: " + text, e);
    }
  }
}
