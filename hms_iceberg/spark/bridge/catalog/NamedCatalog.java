package hms_iceberg.bridge.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.functions.Functions;
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
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The Iceberg tables of another metastore, under a name of their own: ice.db.t. */
public final class NamedCatalog extends NamedChangelogCatalog
    implements ProcedureCatalog, StagingTableCatalog, SupportsNamespaces, FunctionCatalog, IcebergCatalog {
  private final TableDefinitions tables = new TableDefinitions(this);
  private String name;
  private Map properties;
  private Planner planner;
  private String[] defaultNamespace = {"default"};
  private JsonNode number;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.properties = new HashMap(options.asCaseSensitiveMap());
    this.planner = Extension.activePlanner();
    if (options.containsKey("default-namespace")) {
      this.defaultNamespace = new String[] {options.get("default-namespace")};
    }
  }

  /** Whether it was opened with these properties, among others. */
  public boolean has(Map wanted) {
    return properties.entrySet().containsAll(wanted.entrySet());
  }

  public String name() {
    return name;
  }

  public String[] defaultNamespace() {
    return (String[]) defaultNamespace.clone();
  }

  /** What Python calls this catalog; it is opened when it is first used. */
  public synchronized JsonNode number() {
    if (number == null) {
      ObjectNode question = Planner.question("catalog");
      question.put("name", name);
      question.set("properties", Json.MAPPER.valueToTree(properties));
      number = planner.ask(question).header().get("catalog");
    }
    return number;
  }

  private JsonNode ask(String call, String namespace) {
    ObjectNode question = Planner.question(call);
    question.set("catalog", number());
    question.put("namespace", namespace);
    return planner.ask(question).header();
  }

  // ---------------------------------------------------------------------------------------------- tables

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    if (ident instanceof RequestedTable) {
      return ((RequestedTable) ident).load(null, null);
    }
    Table table = load(ident, null, null, null);
    return existing(ident, table == null ? SystemTable.find(this, ident) : table);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    if (ident instanceof RequestedTable) {
      return ((RequestedTable) ident).load(version, null);
    }
    return existing(ident, load(ident, version, null, null));
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    if (ident instanceof RequestedTable) {
      return ((RequestedTable) ident).load(null, Long.valueOf(timestamp));
    }
    return existing(ident, load(ident, null, Long.valueOf(timestamp), null));
  }

  /** A table that is to be written. */
  public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
    return loadTable(ident);
  }

  private static Table existing(Identifier ident, Table table) throws NoSuchTableException {
    if (table == null) {
      throw new NoSuchTableException(ident);
    }
    return table;
  }

  public Table load(Identifier ident, String version, Long asOfMicros, Map options) {
    String[] parts = ident.namespace();
    if (parts.length != 1 && parts.length != 2) {
      return null;
    }
    Source source = new Source(parts.length == 2 ? new TableName(new String[] {parts[0]}, parts[1]) : ident);
    Pointer pointer = SessionCatalog.pinned(source);
    if (pointer != null && pointer.isView) {
      return IcebergView.of(source, name, pointer.location, parts.length == 2, version, asOfMicros);
    }
    String part = parts.length == 2 ? ident.name() : null;
    return pointer == null ? null : TableVersions.load(source, pointer.location, part, version, asOfMicros, options);
  }

  public TableSource source(Identifier ident) {
    return new Source(ident);
  }

  // ----------------------------------------------------------------------------------------------- views

  public List listViews(String[] namespace) throws NoSuchNamespaceException {
    JsonNode views = namespace.length != 1 ? null : ask("views", namespace[0]).get("views");
    if (views == null || views.isNull()) {
      throw new NoSuchNamespaceException(namespace);
    }
    return (List) Json.MAPPER.convertValue(views, List.class);
  }

  /** A view is none, so that DROP TABLE drops none. */
  public boolean tableExists(Identifier ident) {
    Table table = load(ident, null, null, null);
    return table != null && !(table instanceof IcebergView);
  }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    JsonNode tables = namespace.length != 1 ? null : ask("tables", namespace[0]).get("tables");
    if (tables == null || tables.isNull()) {
      throw new NoSuchNamespaceException(namespace);
    }
    Identifier[] idents = new Identifier[tables.size()];
    for (int i = 0; i < idents.length; i++) {
      idents[i] = new TableName(namespace, Json.at(tables, i).asText());
    }
    return idents;
  }

  public final class Source extends TableSource {
    private final Identifier ident;

    public Source(Identifier ident) {
      super(NamedCatalog.this.planner);
      this.ident = ident;
    }

    public String name() {
      return name + "." + TableName.text(ident);
    }

    public String metadataLocation() {
      return Pointer.ofTable(pointer());
    }

    public Pointer pointer() {
      return found();
    }

    public void addCatalog(ObjectNode question) {
      question.set("catalog", number());
    }

    public void addTarget(ObjectNode question) {
      addCatalog(question);
      question.put("namespace", TableName.database(ident));
      question.put("table", ident.name());
    }
  }

  // ------------------------------------------------------------------------------------------ namespaces

  public String[][] listNamespaces() {
    JsonNode names = ask("namespaces", null).get("namespaces");
    String[][] namespaces = new String[names.size()][];
    for (int i = 0; i < namespaces.length; i++) {
      namespaces[i] = new String[] {Json.at(names, i).asText()};
    }
    return namespaces;
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 1 && !ask("namespace", namespace[0]).get("properties").isNull();
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    JsonNode answer = namespace.length != 1 ? null : ask("namespace", namespace[0]).get("properties");
    if (answer == null || answer.isNull()) {
      throw new NoSuchNamespaceException(namespace);
    }
    Map metadata = new HashMap();
    for (Iterator it = answer.fields(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      metadata.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    return metadata;
  }

  public void createNamespace(String[] namespace, Map metadata) throws NamespaceAlreadyExistsException {
    ObjectNode question = change("create-namespace", namespace);
    question.set("properties", Json.MAPPER.valueToTree(metadata));
    try {
      planner.ask(question);
    } catch (Exception e) {
      if (String.valueOf(e.getMessage()).startsWith("NamespaceAlreadyExistsError: ")) {
        throw new NamespaceAlreadyExistsException(namespace);
      }
      throw Failures.unchecked(e);
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
    ObjectNode question = change("alter-namespace", namespace);
    ObjectNode updates = question.putObject("updates");
    ArrayNode removals = question.putArray("removals");
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty) {
        NamespaceChange.SetProperty set = (NamespaceChange.SetProperty) changes[i];
        updates.put(set.property(), set.value());
      } else {
        removals.add(((NamespaceChange.RemoveProperty) changes[i]).property());
      }
    }
    planner.ask(question);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    loadNamespaceMetadata(namespace);
    ObjectNode question = change("drop-namespace", namespace);
    question.put("cascade", cascade);
    return planner.ask(question).header().get("dropped").asBoolean();
  }

  private ObjectNode change(String call, String[] namespace) {
    if (namespace.length != 1) {
      throw Failures.of("InvalidInputError: " + String.join(".", namespace) + " is not the name of a namespace of "
          + name + ": a Hive Metastore has one level of namespaces.", null);
    }
    ObjectNode question = Planner.question(call);
    question.set("catalog", number());
    return question.put("namespace", namespace[0]);
  }

  // ---------------------------------------------------------------------------- functions and procedures

  public UnboundProcedure loadProcedure(Identifier ident) {
    return Procedures.load(this, ident);
  }

  public Identifier[] listProcedures(String[] namespace) {
    return Procedures.list(namespace);
  }

  public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
    UnboundFunction function = Functions.load(ident);
    if (function == null) {
      throw new NoSuchFunctionException(ident);
    }
    return function;
  }

  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    if (Functions.isNamespace(namespace)) {
      return Functions.list(namespace);
    }
    loadNamespaceMetadata(namespace);
    return new Identifier[0];
  }

  // ---------------------------------------------------------------------------------------- definitions

  public Set capabilities() {
    return EnumSet.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }


  public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    return createTable(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    return tables.create(ident, columns, partitions, properties);
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    if (CarriedStatement.isStatement(changes)) {
      CarriedStatement.run(source(ident), changes);
      return loadTable(ident);
    }
    Table table = loadTable(ident);
    if (!(table instanceof IcebergTable)) {
      throw new NoSuchTableException(ident);
    }
    return tables.alter(ident, (IcebergTable) table, changes);
  }

  public boolean dropTable(Identifier ident) {
    return tables.drop(ident, false);
  }

  public boolean purgeTable(Identifier ident) {
    return tables.drop(ident, true);
  }

  public void renameTable(Identifier from, Identifier to) {
    tables.rename(from, to);
  }

  public StagedTable stageCreate(Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    return stageCreate(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public StagedTable stageCreate(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    return tables.stage(TableDefinitions.CREATE, ident, columns, partitions, properties);
  }

  public StagedTable stageReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    return stageReplace(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public StagedTable stageReplace(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    return tables.stage(TableDefinitions.REPLACE, ident, columns, partitions, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    return stageCreateOrReplace(ident, SparkVersions.columns(schema), partitions, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    return tables.stage(TableDefinitions.CREATE_OR_REPLACE, ident, columns, partitions, properties);
  }
}
