package hms_iceberg.bridge.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.functions.Functions;
import hms_iceberg.bridge.metastore.MetastoreRows;
import hms_iceberg.bridge.metastore.SessionMetastore;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.procedures.Procedures;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.tables.IcebergView;
import hms_iceberg.bridge.tables.SystemTable;
import hms_iceberg.bridge.tables.TableVersions;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.Pointer;
import hms_iceberg.bridge.wire.SparkVersions;
import hms_iceberg.bridge.wire.TableSource;
import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's session catalog, in which a row of the metastore with table_type=ICEBERG is an Iceberg table and
 * everything else is what it was. Because an Iceberg table never comes out of here as a Hive table, no Hive
 * reader, writer or DDL command can reach its files.
 */
public final class SessionCatalog extends ChangelogCatalog
    implements StagingTableCatalog, ProcedureCatalog, IcebergCatalog {
  /** The metadata location of each table that the current query has used: one snapshot for all its references. */
  private static final ThreadLocal SEEN = new ThreadLocal();
  /** Names that no other file will ever have; Python decides, and need not be asked about these. */
  private static final Pattern UUID_IN_NAME =
      Pattern.compile("[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}[^/]*$", Pattern.CASE_INSENSITIVE);

  private final TableDefinitions tables = new TableDefinitions(this);
  private Map options = Collections.emptyMap();
  private Planner planner;
  private JsonNode number;
  private boolean joined;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.options = new HashMap(options.asCaseSensitiveMap());
    this.planner = Extension.activePlanner();
  }

  /** Takes what the user chose as the catalog of everything that is not Iceberg. */
  public synchronized void join(SQLConf conf) {
    if (!joined) {
      delegate = InnerCatalog.over(delegate, conf);
      joined = true;
    }
  }

  public void createNamespace(String[] namespace, Map metadata) throws NamespaceAlreadyExistsException {
    super.createNamespace(namespace, NewDatabases.located(namespace, metadata));
  }

  public synchronized JsonNode number() {
    if (number == null) {
      number = SessionMetastore.number(planner, name(), options);
    }
    return number;
  }

  public TableSource source(Identifier ident) {
    return new Source(ident, this);
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    if (ident instanceof RequestedTable) {
      return ((RequestedTable) ident).load(null, null);
    }
    Table table = load(ident, null, null, null);
    try {
      return table == null ? super.loadTable(ident) : table;
    } catch (Exception e) {
      return otherwiseNamed(ident, null, null, e);
    }
  }

  /**
   * Before Spark 4.1, DataFrameWriter.saveAsTable drops the row of a table that it overwrites, and only then makes a
   * plan that a rule could refuse. But first it looks at the table, by SparkSession.table.
   */
  private static boolean isAboutToBeReplaced() {
    if (!org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.0.")) {
      return false;
    }
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    boolean looked = false;
    for (int i = 0; i < calls.length; i++) {
      String called = calls[i].getClassName();
      looked = looked || "table".equals(calls[i].getMethodName()) && called.endsWith(".SparkSession");
      if (looked && called.endsWith(".DataFrameWriter") && calls[i].getMethodName().startsWith("saveAs")) {
        return true;
      }
    }
    return false;
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    if (ident instanceof RequestedTable) {
      return ((RequestedTable) ident).load(version, null);
    }
    Table table = load(ident, version, null, null);
    try {
      return table == null ? super.loadTable(ident, version) : table;
    } catch (Exception e) {
      return otherwiseNamed(ident, version, null, e);
    }
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    if (ident instanceof RequestedTable) {
      return ((RequestedTable) ident).load(null, Long.valueOf(timestamp));
    }
    Table table = load(ident, null, Long.valueOf(timestamp), null);
    try {
      return table == null ? super.loadTable(ident, timestamp) : table;
    } catch (Exception e) {
      return otherwiseNamed(ident, null, Long.valueOf(timestamp), e);
    }
  }

  /**
   * After use db, what is not found as a table files in a database t may be t.files, of the table db.t. What is no table
   * at all may be a system table: a database system of the user's own goes first.
   */
  private Table otherwiseNamed(Identifier ident, String version, Long asOfMicros, Exception missing) {
    Identifier whole = null;
    if (ident.namespace().length == 1) {
      List view = CollectionConverters.asJava(AnalysisContext.get().catalogAndNamespace());
      String[] current = view.size() == 2 ? new String[] {(String) view.get(1)}
          : ((SparkSession) SparkSession.active()).sessionState().catalogManager().currentNamespace();
      whole = current.length != 1 ? null : new TableName(new String[] {current[0], ident.namespace()[0]}, ident.name());
    }
    if (whole != null && isMetadata(whole)) {
      return load(whole, version, asOfMicros, null);
    }
    boolean isAbsent = missing instanceof NoSuchTableException || missing instanceof NoSuchNamespaceException;
    Table system = isAbsent && version == null && asOfMicros == null ? SystemTable.find(this, ident) : null;
    if (system == null) {
      Platform.throwException(missing);
    }
    return system;
  }

  private boolean isMetadata(Identifier ident) {
    try {
      return load(ident, null, null, null) != null;
    } catch (Exception e) {
      return false;
    }
  }

  public Table load(Identifier ident, String version, Long asOfMicros, Map options) {
    String[] parts = ident.namespace();
    Identifier table = parts.length == 2 ? new TableName(new String[] {parts[0]}, parts[1]) : ident;
    Pointer pointer = table.namespace().length == 1 ? pinned(new Source(table, this)) : null;
    if (pointer == null) {
      return null;
    }
    if (pointer.isView) {
      return IcebergView.of(new Source(table, this), name(), pointer.location, parts.length == 2, version, asOfMicros);
    }
    if (isAboutToBeReplaced()) {
      throw MetastoreRows.notReplaceable(TableName.text(ident));
    }
    String part = parts.length == 2 ? ident.name() : null;
    return TableVersions.load(new Source(table, this), pointer.location, part, version, asOfMicros, options);
  }

  /** A table that is to be written. */
  public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
    return loadTable(ident); // what the interface's own method does; Janino cannot call that one
  }

  // --------------------------------------------------------------------------------------- definitions

  public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return createTable(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return isIceberg(properties)
        ? tables.create(ident, columns, partitions, properties)
        : super.createTable(ident, columns, partitions, properties);
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    Table table = load(ident, null, null, null);
    if (table instanceof IcebergView) {
      throw IcebergView.notWritable(TableName.text(ident), "ALTER");
    }
    if (!(table instanceof IcebergTable)) {
      return super.alterTable(ident, changes);
    }
    if (CarriedStatement.isStatement(changes)) {
      CarriedStatement.run(source(ident), changes);
      return loadTable(ident);
    }
    return tables.alter(ident, (IcebergTable) table, changes);
  }

  /** Hive's client would ask the metastore to delete the files too. */
  public boolean dropTable(Identifier ident) {
    return metadataLocation(ident) == null ? super.dropTable(ident) : tables.drop(ident, false);
  }

  public boolean purgeTable(Identifier ident) {
    return metadataLocation(ident) == null ? super.purgeTable(ident) : tables.drop(ident, true);
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    if (metadataLocation(from) == null) {
      super.renameTable(from, to);
    } else {
      tables.rename(from, to);
    }
  }

  /** Without USING, a table is of the session's default format. */
  private static boolean isIceberg(Map properties) {
    String provider = (String) properties.get(TableCatalog.PROP_PROVIDER);
    return "iceberg".equalsIgnoreCase(provider == null
        ? SQLConf.get().defaultDataSourceName() : provider);
  }

  public StagedTable stageCreate(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return stageCreate(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public StagedTable stageCreate(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return isIceberg(properties)
        ? tables.stage(TableDefinitions.CREATE, ident, columns, partitions, properties)
        : new StagedByOthers(this, ident, super.createTable(ident, columns, partitions, properties));
  }

  public StagedTable stageReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchTableException, NoSuchNamespaceException {
    return stageReplace(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public StagedTable stageReplace(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
      throws NoSuchTableException, NoSuchNamespaceException {
    if (isIceberg(properties)) {
      return tables.stage(TableDefinitions.REPLACE, ident, columns, partitions, properties);
    }
    refuseReplacing(ident, properties);
    if (!super.dropTable(ident)) {
      throw new NoSuchTableException(ident);
    }
    return createdAnew(ident, columns, partitions, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    return stageCreateOrReplace(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    if (isIceberg(properties)) {
      return tables.stage(TableDefinitions.CREATE_OR_REPLACE, ident, columns, partitions, properties);
    }
    refuseReplacing(ident, properties);
    super.dropTable(ident);
    return createdAnew(ident, columns, partitions, properties);
  }

  private StagedTable createdAnew(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    try {
      return new StagedByOthers(this, ident, super.createTable(ident, columns, partitions, properties));
    } catch (TableAlreadyExistsException e) {
      throw Failures.unchecked(e);
    }
  }

  private void refuseReplacing(Identifier ident, Map properties) {
    if (metadataLocation(ident) != null) {
      throw Failures.of("UnsupportedError: the Iceberg table " + TableName.text(ident) + " cannot be replaced by a table"
          + " of the format " + properties.get(TableCatalog.PROP_PROVIDER) + ". Nothing was changed. Drop it first, or"
          + " choose another name.", null);
    }
  }

  public UnboundProcedure loadProcedure(Identifier ident) {
    return Procedures.load(this, ident);
  }

  public Identifier[] listProcedures(String[] namespace) {
    return Procedures.list(namespace);
  }

  public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
    UnboundFunction function = Functions.load(ident);
    return function == null ? super.loadFunction(ident) : function;
  }

  public boolean functionExists(Identifier ident) {
    return Functions.load(ident) != null || super.functionExists(ident);
  }

  /** Where the table's current metadata is, or null if the row is not an Iceberg table. */
  private String metadataLocation(Identifier ident) {
    if (ident.namespace().length != 1) {
      return null;
    }
    return Pointer.ofTable(pinned(new Source(ident, this)));
  }

  /** The newest metadata of a table or view, or what it was when the current query first asked. */
  static Pointer pinned(TableSource source) {
    Map seen = seenInThisQuery();
    String key = source.name().toLowerCase(Locale.ROOT);
    if (!seen.containsKey(key)) {
      seen.put(key, source.pointer());
    }
    return (Pointer) seen.get(key);
  }

  /** A statement that changes the table it is about (MERGE WITH SCHEMA EVOLUTION) goes on with what it made of it. */
  static void pinAnew(TableSource source) {
    seenInThisQuery().put(source.name().toLowerCase(Locale.ROOT), source.pointer());
  }

  /** The parameters of the row that decides a transaction on several tables, by the mark in another row of it. */
  private static Map deciding(String mark) {
    JsonNode name = Json.read(mark).get("decides");
    return name == null ? null : MetastoreRows.parameters(Json.at(name, 0).asText(), Json.at(name, 1).asText());
  }

  private static Pointer newest(Identifier ident, Planner planner) {
    Map parameters = MetastoreRows.parameters(ident.namespace()[0], ident.name());
    boolean isView = MetastoreRows.isIcebergView(parameters);
    if (!isView && !MetastoreRows.isIceberg(parameters)) {
      return null;
    }
    String location = (String) parameters.get("metadata_location");
    if (location == null) {
      throw Failures.of("CorruptMetadataError: the metastore says that " + TableName.text(ident)
          + " is an Iceberg table (table_type=ICEBERG) but has no metadata_location for it. Set the parameter to the table's newest"
          + " metadata file, or drop the row and register the table again.", null);
    }
    // Whoever changed the file of an encrypted table must not be believed, and v1.metadata.json may be a new one. A row
    // with a mark was moved by a transaction on several tables, which another row decides.
    String mark = (String) parameters.get("hms_iceberg.transaction");
    if (!isView && (mark != null || parameters.containsKey("encryption.key-id")
        || !UUID_IN_NAME.matcher(location).find())) {
      ObjectNode question = Planner.question("name-version");
      question.put("location", location);
      question.set("row", Json.MAPPER.valueToTree(parameters));
      question.set("deciding", Json.MAPPER.valueToTree(mark == null ? null : deciding(mark)));
      location = planner.ask(question).header().get("metadata_location").asText();
    }
    return new Pointer(location, isView);
  }

  /**
   * Starts anew with each query: Spark fills the cache of the query's relations as it resolves them, and outside
   * of a query that cache is always empty.
   */
  private static Map seenInThisQuery() {
    scala.collection.Map query = AnalysisContext.get().relationCache();
    Object[] last = (Object[]) SEEN.get();
    if (last == null || ((WeakReference) last[0]).get() != query || query.isEmpty()) {
      last = new Object[] {new WeakReference(query), new HashMap()};
      SEEN.set(last);
    }
    return (Map) last[1];
  }

  public static final class Source extends TableSource {
    private final Identifier ident;
    private final SessionCatalog catalog;

    public Source(Identifier ident, SessionCatalog catalog) {
      super(catalog.planner);
      this.ident = ident;
      this.catalog = catalog;
    }

    public String name() {
      return TableName.text(ident);
    }

    public String shownName() {
      return catalog.name() + "." + name();
    }

    public String metadataLocation() {
      return Pointer.ofTable(pointer());
    }

    public Pointer pointer() {
      return planner.transactions.active() == null ? newest(ident, planner) : found();
    }

    public void addTarget(ObjectNode question) {
      question.set("catalog", catalog.number());
      question.put("namespace", TableName.database(ident));
      question.put("table", ident.name());
    }
  }
}
