package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One snapshot of an Iceberg table, as the analyzer sees it. PlanScans puts its files in its place. */
public class IcebergTable extends EvolvingTable
    implements SupportsRead, SupportsWrite, SupportsMetadataColumns, SupportsRowLevelOperations, SupportsDeleteV2 {
  /** TableCatalog.PROP_TABLE_TYPE, which Spark has from 4.1 on. */
  private static final String TYPE = "table_type";

  private final TableSource source;
  private final ObjectNode question;
  private final JsonNode description;
  private final StructType idSchema;
  private final StructType hiddenSchema;
  private final StructType schema;
  private final List identityColumns;

  /** The question says which version of the table, and what of it, is read. */
  IcebergTable(TableSource source, ObjectNode question) {
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
  IcebergTable(TableSource source, Described described) {
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

  /** The same table. */
  IcebergTable(IcebergTable other) {
    this(other, other.question);
  }

  private IcebergTable(IcebergTable stream, ObjectNode question) {
    this.source = stream.source;
    this.question = question;
    this.description = stream.description;
    this.idSchema = stream.idSchema;
    this.hiddenSchema = stream.hiddenSchema;
    this.schema = stream.schema;
    this.identityColumns = stream.identityColumns;
  }

  /** A batch of a stream of this table, as the table is now and with the columns that it had when the stream began. */
  IcebergTable batch(String metadataLocation, ObjectNode batch) {
    ObjectNode asked = (ObjectNode) question.deepCopy();
    asked.put("metadata_location", metadataLocation);
    asked.set("batch", batch);
    return new IcebergTable(this, asked);
  }

  /** The same if Spark knows no catalog of it, so that no function of one can be used in a write. */
  IcebergTable withoutCatalog() {
    ObjectNode alone = (ObjectNode) question.deepCopy();
    alone.put("without_catalog", true);
    return new IcebergTable(this, alone);
  }

  /** How Python says that rows change: its mode, and why merge-on-read cannot be; or the error of a wrong mode. */
  JsonNode rowChange(String command) {
    return description.get("row_changes").get(command);
  }

  boolean hasCatalog() {
    return !question.has("without_catalog");
  }

  String newestMetadata() {
    return source.metadataLocation();
  }

  /** A question that changes the table. */
  ObjectNode change(String call) {
    return source.change(call);
  }

  Planner planner() {
    return source.planner;
  }

  void addCatalog(ObjectNode asked) {
    source.addCatalog(asked);
  }

  /** Another question about what is read. */
  ObjectNode question(String call) {
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

  String metadataLocation() {
    return question.get("metadata_location").asText();
  }

  /** Whether the other was asked for in the same words, with the same answer but for what was committed between. */
  boolean isOtherVersionOf(IcebergTable other) {
    ObjectNode words = ((ObjectNode) question.deepCopy()).put("metadata_location", other.metadataLocation());
    return words.equals(other.question) && !equals(other) && schema.equals(other.schema);
  }

  /** The snapshot that is read, or null if the table has none. */
  Long snapshotId() {
    JsonNode id = description.get("snapshot_id");
    return id == null || id.isNull() ? null : Long.valueOf(id.asLong());
  }

  /** All columns, hidden ones last; their Iceberg ids, and what else the reader must know, are in the metadata. */
  StructType idSchema() {
    return Structs.concat(idSchema, hiddenSchema);
  }

  /** Whether a name is that of a hidden column, and not of a column of the table's own. */
  boolean hides(String column) {
    return Structs.has(hiddenSchema, column) && !Structs.has(schema, column);
  }

  /** A session like this one that splits files as the options of the read say. */
  SparkSession sized(SparkSession session) {
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

  public String id() {
    return description.get("uuid").asText();
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

  public Transform[] partitioning() {
    List transforms = new ArrayList();
    for (Iterator it = description.get("partitioning").elements(); it.hasNext();) {
      JsonNode field = (JsonNode) it.next();
      List arguments = new ArrayList();
      if (field.has("argument")) {
        arguments.add(Expressions.literal(Integer.valueOf(field.get("argument").asInt())));
      }
      arguments.add(Expressions.column(field.get("column").asText()));
      String transform = field.get("transform").asText();
      transforms.add("identity".equals(transform)
          ? Expressions.identity(field.get("column").asText())
          : Expressions.apply(transform, (Expression[]) arguments.toArray(new Expression[0])));
    }
    return (Transform[]) transforms.toArray(new Transform[0]);
  }

  public Map properties() {
    Map properties = new LinkedHashMap();
    for (Iterator it = description.get("properties").fields(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      properties.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    if (CatalogV2Util.TABLE_RESERVED_PROPERTIES().contains(TYPE)) {
      properties.put(TYPE, "EXTERNAL"); // as Java has it, because DROP without PURGE leaves the files
    }
    return properties;
  }

  public Set capabilities() {
    return Capabilities.of(properties(), isReadBySpark());
  }

  /**
   * Types may become wider; rows of a type that may not are cast to the column's. A column that cannot be added is asked
   * for all the same, so that the statement fails and nothing is left out of it.
   */
  boolean mayChange(TableChange.ColumnChange change) {
    if (!(change instanceof TableChange.UpdateColumnType)) {
      return true;
    }
    TableChange[] changes = {change};
    try {
      return planner().ask(Alterations.alter(question("may-change"), schema, changes)).header().get("possible").asBoolean();
    } catch (Exception e) {
      throw Failures.unchecked(e);
    }
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new TableWriteBuilder(this, info);
  }

  /** The branch that this was asked for by, null for main; refuses what is a version of the past. */
  String branch() {
    JsonNode options = question.path("options");
    boolean past = question.hasNonNull("version") || question.hasNonNull("as_of_micros")
        || options.has("snapshot-id") || options.has("as-of-timestamp") || options.has("tag");
    if (past) {
      throw Failures.of("InvalidInputError: cannot write to a version of the past of the table " + name()
          + ". Write to the table, or to a branch (" + name() + ".branch_b).", null);
    }
    return options.has("branch") ? options.get("branch").asText() : null;
  }

  public MetadataColumn[] metadataColumns() {
    StructField[] fields = hiddenSchema.fields();
    MetadataColumn[] columns = new MetadataColumn[fields.length];
    for (int i = 0; i < fields.length; i++) {
      columns[i] = new HiddenColumn(fields[i].name(), withoutIds(fields[i].dataType()));
    }
    return columns;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return isReadBySpark() ? (ScanBuilder) new TableScanBuilder(this, options) : estimate();
  }

  /** The columns by whose own values every file of the table is partitioned. */
  List identityColumns() {
    return identityColumns;
  }

  /** Whether no file of the table can be one that only Python reads. */
  boolean isReadBySpark() {
    return description.get("read_by_spark").asBoolean() && !question.has("batch");
  }

  Estimate estimate() {
    return new Estimate(schema, description.get("size_in_bytes").asLong(), description.get("row_count"));
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return new RowOperation.Builder(this, info);
  }

  public boolean canDeleteWhere(Predicate[] predicates) {
    return MetadataDelete.isPossible(this, predicates);
  }

  public void deleteWhere(Predicate[] predicates) {
    MetadataDelete.commit(this, predicates);
  }

  public boolean equals(Object other) {
    if (other == null || other.getClass() != getClass()) { // Spark puts no plan in the place of an equal one
      return false;
    }
    IcebergTable that = (IcebergTable) other;
    return name().equals(that.name()) && id().equals(that.id()) && version().equals(that.version());
  }

  public int hashCode() {
    return version().hashCode();
  }

  public String toString() {
    return "Iceberg " + name() + (snapshotId() == null ? " (no snapshot)" : " (snapshot " + snapshotId() + ")");
  }

  /** Users get a schema with comments and defaults alone, so that ids do not travel into what they write. */
  static StructType withoutIds(StructType struct) {
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

  private static DataType withoutIds(DataType type) {
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
  static final class Described {
    final JsonNode description;
    final StructType idSchema;
    final StructType hiddenSchema;
    final StructType schema;
    final List identityColumns = new ArrayList();

    Described(JsonNode description) {
      this.description = description;
      this.idSchema = UnsupportedTypes.parse(description.get("schema"));
      this.hiddenSchema = UnsupportedTypes.parse(description.get("metadata_schema"));
      this.schema = withoutIds(idSchema);
      for (Iterator it = description.get("identity_columns").elements(); it.hasNext();) {
        identityColumns.add(((JsonNode) it.next()).asText());
      }
    }
  }

  static final class Describe implements Planner.AnswerReader {
    public Object read(Answer answer) {
      return new Described(answer.header());
    }
  }

  static final class HiddenColumn implements MetadataColumn {
    private final String name;
    private final DataType type;

    HiddenColumn(String name, DataType type) {
      this.name = name;
      this.type = type;
    }

    public String name() {
      return name;
    }

    public DataType dataType() {
      return type;
    }

    /** A row is found again by these two, which it always has. */
    public boolean isNullable() {
      return !MetadataColumns.FILE.equals(name) && !MetadataColumns.POSITION.equals(name);
    }

    /** A row that is changed keeps its id, and says nothing of when it was changed. */
    public String metadataInJSON() {
      return Generation.preserved(!MetadataColumns.LAST_UPDATED.equals(name));
    }
  }

  /** What the optimizer may know before the files are planned: the size that the snapshot's summary gives. */
  static final class Estimate implements ScanBuilder, SupportsReportStatistics, Statistics {
    private final StructType schema;
    private final long size;
    private final JsonNode rows;

    Estimate(StructType schema, long size, JsonNode rows) {
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
