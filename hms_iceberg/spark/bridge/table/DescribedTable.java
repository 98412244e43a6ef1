package hms_iceberg.bridge.table;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.ddl.Defaults;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.CachedTables;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.TableSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** One version of a table as Python describes it: what those who read it and write it need to know. */
public abstract class DescribedTable extends EvolvingTable implements SupportsRead {
  /** In the names of versions that are in a transaction of a session only. */
  private static final String UNCOMMITTED = "#transaction-";

  public final TableSource source;
  public final ObjectNode question;
  public final JsonNode description;
  private final StructType idSchema;
  public final StructType hiddenSchema;
  public final StructType schema;
  private final List identityColumns;

  /** The question says which version of the table, and what of it, is read. */
  public DescribedTable(TableSource source, ObjectNode question) {
    this.source = source;
    this.question = question;
    Described known = (Described) planner().askOnce(question, new Describe());
    this.description = known.description;
    this.idSchema = known.idSchema;
    this.hiddenSchema = known.hiddenSchema;
    this.schema = known.schema;
    this.identityColumns = known.identityColumns;
  }

  /** A table that is not committed yet, as its transaction would leave it. */
  public DescribedTable(TableSource source, Described described) {
    this.source = source;
    this.question = Planner.question("load");
    this.question.put("name", source.name());
    this.question.put("metadata_location", "not committed yet");
    this.description = described.description;
    this.idSchema = described.idSchema;
    this.hiddenSchema = described.hiddenSchema;
    this.schema = described.schema;
    this.identityColumns = described.identityColumns;
  }

  /** The same version of the table, of which another part is read, or in other words. */
  public DescribedTable(DescribedTable other, ObjectNode question) {
    this.source = other.source;
    this.question = question;
    this.description = other.description;
    this.idSchema = other.idSchema;
    this.hiddenSchema = other.hiddenSchema;
    this.schema = other.schema;
    this.identityColumns = other.identityColumns;
  }

  public abstract DescribedTable with(ObjectNode otherQuestion);

  /** A batch of a stream of this table, as the table is now and with the columns that it had when the stream began. */
  public DescribedTable batch(String metadataLocation, ObjectNode batch) {
    ObjectNode asked = (ObjectNode) question.deepCopy();
    asked.put("metadata_location", metadataLocation);
    asked.set("batch", batch);
    return with(asked);
  }

  /** How Python says that rows change: its mode, and why merge-on-read cannot be; or the error of a wrong mode. */
  public JsonNode rowChange(String command) {
    return description.get("row_changes").get(command);
  }

  public boolean hasCatalog() {
    return !question.has("without_catalog");
  }

  public String newestMetadata() {
    return source.metadataLocation();
  }

  /** A question that changes the table. */
  public ObjectNode change(String call) {
    return source.change(call);
  }

  public Planner planner() {
    return source.planner;
  }

  public void addCatalog(ObjectNode asked) {
    source.addCatalog(asked);
  }

  /** Another question about what is read. */
  public ObjectNode question(String call) {
    ObjectNode asked = Planner.question(call);
    asked.put("name", source.name());
    asked.put("metadata_location", metadataLocation());
    asked.set("snapshot_id", description.get("snapshot_id"));
    asked.set("start_snapshot_id", description.get("start_snapshot_id"));
    asked.set("schema_id", description.get("schema_id"));
    if (question.has("batch")) {
      asked.set("batch", question.get("batch"));
    }
    asked.set("lacking_types", UnsupportedTypes.lacking());
    source.addCatalog(asked);
    return asked;
  }

  public String metadataLocation() {
    return question.get("metadata_location").asText();
  }

  /** Whether the other was asked for in the same words, with the same answer but for what was committed between. */
  public boolean isOtherVersionOf(DescribedTable other) {
    ObjectNode words = ((ObjectNode) question.deepCopy()).put("metadata_location", other.metadataLocation());
    return words.equals(other.question) && !equals(other) && schema.equals(other.schema);
  }

  /** The snapshot that is read, or null if the table has none. */
  Long snapshotId() {
    JsonNode id = description.get("snapshot_id");
    return id == null || id.isNull() ? null : Long.valueOf(id.asLong());
  }

  /** All columns, hidden ones last; their Iceberg ids, and what else the reader must know, are in the metadata. */
  public StructType idSchema() {
    return Structs.concat(idSchema, hiddenSchema);
  }

  /** Whether a name is that of a hidden column, and not of a column of the table's own. */
  public boolean hides(String column) {
    return Structs.has(hiddenSchema, column) && !Structs.has(schema, column);
  }

  /** A session like this one that splits files as the options of the read say. */
  public SparkSession sized(SparkSession session) {
    JsonNode split = question.path("options").get("split-size");
    JsonNode open = question.path("options").get("file-open-cost");
    if (split == null && open == null) {
      return session;
    }
    org.apache.spark.sql.classic.SparkSession own =
        ((org.apache.spark.sql.classic.SparkSession) session).cloneSession();
    if (split != null) {
      own.sessionState().conf().setConfString("spark.sql.files.maxPartitionBytes", split.asText() + "b");
      own.sessionState().conf().setConfString("spark.sql.files.minPartitionNum", "1");
    }
    if (open != null) {
      own.sessionState().conf().setConfString("spark.sql.files.openCostInBytes", open.asText() + "b");
    }
    return own;
  }

  public String name() {
    return source.shownName();
  }

  /**
   * What is cached of a name answers for every version with this id, in every session. A version that only a transaction
   * has is none of those, nor is it cached in their place.
   */
  public String id() {
    String uuid = description.get("uuid").asText();
    int mark = metadataLocation().indexOf(UNCOMMITTED);
    return mark < 0 || !CachedTables.answer(change("load"))
        ? uuid : uuid + metadataLocation().substring(mark, metadataLocation().lastIndexOf('@'));
  }

  public String version() {
    return metadataLocation() + "#" + description.get("start_snapshot_id") + "#" + snapshotId()
        + part("batch") + part("rewrite");
  }

  /** Of what is read only a part of the version: two parts must not be taken for each other. */
  private String part(String name) {
    return question.has(name) ? "#" + question.get(name) : "";
  }

  public StructType schema() {
    return schema;
  }

  /** The branch that this was asked for by, null for main; refuses what is a version of the past. */
  public String branch() {
    JsonNode options = question.path("options");
    boolean past = question.hasNonNull("version") || question.hasNonNull("as_of_micros")
        || options.has("snapshot-id") || options.has("as-of-timestamp") || options.has("tag");
    if (past) {
      throw Failures.of("InvalidInputError: cannot write to a version of the past of the table " + name()
          + ". Write to the table, or to a branch (" + name() + ".branch_b).", null);
    }
    return options.has("branch") ? options.get("branch").asText() : null;
  }

  /** The columns by whose own values every file of the table is partitioned. */
  public List identityColumns() {
    return identityColumns;
  }

  /** Whether no file of the table can be one that only Python reads. */
  public boolean isReadBySpark() {
    return description.get("read_by_spark").asBoolean();
  }

  public Estimate estimate() {
    return new Estimate(schema, description.get("size_in_bytes").asLong(), description.get("row_count"));
  }

  public boolean equals(Object other) {
    if (other == null || other.getClass() != getClass()) { // Spark puts no plan in the place of an equal one
      return false;
    }
    DescribedTable that = (DescribedTable) other;
    return name().equals(that.name()) && id().equals(that.id()) && version().equals(that.version());
  }

  public int hashCode() {
    return version().hashCode();
  }

  public String toString() {
    return "Iceberg " + name() + (snapshotId() == null ? " (no snapshot)" : " (snapshot " + snapshotId() + ")");
  }

  /** Users get a schema with comments and defaults alone, so that ids do not travel into what they write. */
  public static StructType withoutIds(StructType struct) {
    StructField[] fields = struct.fields();
    StructField[] plain = new StructField[fields.length];
    for (int i = 0; i < fields.length; i++) {
      MetadataBuilder metadata = new MetadataBuilder();
      if (fields[i].metadata().contains("comment")) {
        metadata.putString("comment", fields[i].metadata().getString("comment"));
      }
      if (fields[i].metadata().contains(Defaults.KEY)) {
        metadata.putString(Defaults.SPARK_KEY, Defaults.sql(fields[i]));
      }
      plain[i] = new StructField(
          fields[i].name(), withoutIds(fields[i].dataType()), fields[i].nullable(), metadata.build());
    }
    return new StructType(plain);
  }

  public static DataType withoutIds(DataType type) {
    if (type instanceof StructType) {
      return withoutIds((StructType) type);
    }
    if (type instanceof org.apache.spark.sql.types.ArrayType) {
      org.apache.spark.sql.types.ArrayType array = (org.apache.spark.sql.types.ArrayType) type;
      return new org.apache.spark.sql.types.ArrayType(withoutIds(array.elementType()), array.containsNull());
    }
    if (type instanceof org.apache.spark.sql.types.MapType) {
      org.apache.spark.sql.types.MapType map = (org.apache.spark.sql.types.MapType) type;
      return new org.apache.spark.sql.types.MapType(
          withoutIds(map.keyType()), withoutIds(map.valueType()), map.valueContainsNull());
    }
    return type;
  }

  /** What is the same for every use of one version of a table. */
  public static final class Described {
    public final JsonNode description;
    public final StructType idSchema;
    final StructType hiddenSchema;
    public final StructType schema;
    public final List identityColumns = new ArrayList();

    public Described(JsonNode description) {
      this.description = description;
      this.idSchema = UnsupportedTypes.parse(description.get("schema"));
      this.hiddenSchema = UnsupportedTypes.parse(description.get("metadata_schema"));
      this.schema = withoutIds(idSchema);
      for (Iterator it = description.get("identity_columns").elements(); it.hasNext();) {
        identityColumns.add(((JsonNode) it.next()).asText());
      }
    }
  }

  public static final class Describe implements Planner.AnswerReader {
    public Object read(Answer answer) {
      return new Described(answer.header());
    }
  }

  /** What the optimizer may know before the files are planned: the size that the snapshot's summary gives. */
  public static final class Estimate implements ScanBuilder, SupportsReportStatistics, Statistics {
    public final StructType schema;
    private final long size;
    private final JsonNode rows;

    public Estimate(StructType schema, long size, JsonNode rows) {
      this.schema = schema;
      this.size = size;
      this.rows = rows;
    }

    public Scan build() {
      return this;
    }

    public StructType readSchema() {
      return schema;
    }

    public Statistics estimateStatistics() {
      return this;
    }

    public OptionalLong sizeInBytes() {
      return OptionalLong.of(size);
    }

    public OptionalLong numRows() {
      return rows == null || rows.isNull() ? OptionalLong.empty() : OptionalLong.of(rows.asLong());
    }

    public Map columnStats() {
      return Collections.emptyMap();
    }
  }
}
