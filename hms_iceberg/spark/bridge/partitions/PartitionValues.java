package hms_iceberg.bridge.partitions;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import hms_iceberg.bridge.wire.Json;
import java.io.Serializable;
import java.net.URLEncoder;
import org.apache.spark.sql.catalyst.InternalRow;

/** The partition of each row by one spec. */
public final class PartitionValues implements Serializable {
  public final int specId;
  private final String[] names;
  private final PartitionTransform[] transforms;

  public PartitionValues(JsonNode spec) {
    this.specId = spec.get("spec_id").asInt();
    JsonNode fields = spec.get("fields");
    this.names = new String[fields.size()];
    this.transforms = new PartitionTransform[fields.size()];
    for (int i = 0; i < names.length; i++) {
      JsonNode field = Json.at(fields, i);
      names[i] = field.get("name").asText();
      transforms[i] = PartitionTransform.of(field);
    }
  }

  boolean isUnpartitioned() {
    for (int i = 0; i < transforms.length; i++) {
      if (!(transforms[i] instanceof PartitionTransform.Nothing)) {
        return false;
      }
    }
    return true;
  }

  /** A row's values, which may point into the row. */
  public PartitionKey of(InternalRow row) {
    Object[] values = new Object[transforms.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = transforms[i].of(row);
    }
    return new PartitionKey(specId, values);
  }

  /** The folder of a partition, escaped as Java escapes it; empty if there are no partitions. */
  public String folder(PartitionKey key) {
    if (isUnpartitioned()) {
      return "";
    }
    StringBuilder path = new StringBuilder();
    try {
      for (int i = 0; i < names.length; i++) {
        path.append(i == 0 ? "" : "/").append(URLEncoder.encode(names[i], "UTF-8")).append('=')
            .append(URLEncoder.encode(transforms[i].text(key.values[i]), "UTF-8"));
      }
    } catch (java.io.UnsupportedEncodingException e) {
      throw new IllegalStateException(e);
    }
    return path.toString();
  }

  /** The values as JSON, as Python takes Spark's internal values. */
  public static String json(PartitionKey key) {
    ArrayNode values = JsonNodeFactory.instance.arrayNode();
    for (int i = 0; i < key.values.length; i++) {
      values.add(ValueText.of(key.values[i]));
    }
    return values.toString();
  }
}
