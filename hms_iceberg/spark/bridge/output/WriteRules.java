package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.partitions.PartitionValues;
import java.io.Serializable;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.types.StructType;

/**
 * How the rows of a write become files: what Python answered when the write began, as executors need it. One set of
 * rules is for one kind of file; a write of rows and of position deletes has two, and one TaskFiles for each.
 */
public final class WriteRules implements Serializable {
  /** The columns of the rows, with field ids and Iceberg's types in their metadata. */
  public final StructType schema;
  /** The columns of the files, under the names that they have there. */
  public final StructType fileSchema;
  /** Which columns of the rows these are; null if all are stored. */
  public final int[] stored;
  /** By the id of the spec, how its partition values are made. */
  public final Map specs;
  /** The spec of rows that come without one. */
  public final int specId;
  public final long targetSize;
  /** Whether a file stays open for each partition until the task ends, or is closed when the next partition begins. */
  public final boolean fanout;
  public final FileNames names;
  public final String format;
  /** The columns of ORC and Avro files, as Python describes them. */
  public final String fileType;
  /** The ids of the columns that are counted; see RowMetrics. */
  public final Map columns;
  public final String codec;
  /** Settings of the format's writer, by its names in Hadoop's configuration. */
  public final Map settings;
  /** How many rows of a file tell how variants are shredded; 0 if they stay whole. */
  public final int shredBy;
  /** How long the keys of files are that Spark encrypts; 0 if it encrypts none. */
  public final int keyBytes;
  /** How the process is started that writes other files than Parquet; null for Parquet. */
  public final PythonWriter.Start python;
  /** The footer's own keys. */
  public final Map footer;

  public WriteRules(JsonNode answer, String operation, SimplePythonFunction worker) {
    this.schema = UnsupportedTypes.parse(answer.get("schema"));
    this.fileSchema = UnsupportedTypes.parse(answer.get("file_schema"));
    this.stored = StoredColumns.ordinals(answer.get("stored"));
    this.specs = new HashMap();
    for (Iterator it = answer.get("specs").elements(); it.hasNext();) {
      JsonNode spec = (JsonNode) it.next();
      specs.put(Integer.valueOf(spec.get("spec_id").asInt()), new PartitionValues(spec));
    }
    this.specId = answer.get("spec_id").asInt();
    this.targetSize = answer.get("target_size").asLong();
    this.fanout = answer.get("fanout").asBoolean();
    this.names = new FileNames(answer.get("names"), operation);
    this.format = answer.get("format").asText();
    this.fileType = answer.get("file_type").asText();
    this.columns = new HashMap();
    for (Iterator it = texts(answer.get("columns")).entrySet().iterator(); it.hasNext();) {
      Map.Entry column = (Map.Entry) it.next();
      columns.put(Integer.valueOf((String) column.getKey()), Integer.valueOf((String) column.getValue()));
    }
    this.codec = answer.get("codec").asText();
    this.settings = texts(answer.get("settings"));
    this.shredBy = answer.get("shred_by").asInt();
    this.keyBytes = answer.get("key_bytes").asInt();
    this.python = answer.get("job").isNull()
        ? null : new PythonWriter.Start(worker, Base64.getDecoder().decode(answer.get("job").asText()));
    this.footer = texts(answer.get("footer"));
  }

  public PartitionValues spec(int id) {
    return (PartitionValues) specs.get(Integer.valueOf(id));
  }

  private static Map texts(JsonNode object) {
    Map texts = new HashMap();
    for (Iterator it = object.fields(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      texts.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    return texts;
  }
}
