package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The Iceberg tables of another metastore, under a name of their own: ice.db.t. */
public final class NamedCatalog implements TableCatalog, SupportsNamespaces, FunctionCatalog, IcebergCatalog {
  private String name;
  private Map properties;
  private Planner planner;
  private String[] defaultNamespace = {"default"};
  private JsonNode number;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.properties = new HashMap(options.asCaseSensitiveMap());
    this.planner = Extension.active().planner;
    if (options.containsKey("default-namespace")) {
      this.defaultNamespace = new String[] {options.get("default-namespace")};
    }
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
      ObjectNode question = Bridge.question("catalog");
      question.put("name", name);
      question.set("properties", Bridge.JSON.valueToTree(properties));
      number = planner.ask(question).header().get("catalog");
    }
    return number;
  }

  private JsonNode ask(String call, String namespace) {
    ObjectNode question = Bridge.question(call);
    question.set("catalog", number());
    question.put("namespace", namespace);
    return planner.ask(question).header();
  }

  // ---------------------------------------------------------------------------------------------- tables

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return existing(ident, load(ident, null, null, null));
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return existing(ident, load(ident, version, null, null));
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return existing(ident, load(ident, null, Long.valueOf(timestamp), null));
  }

  public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
    existing(ident, load(ident, null, null, null));
    throw refusal(ident, "Writing to it (" + privileges + ")");
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
    String location = SessionCatalog.pinned(source);
    return location == null
        ? null : source.load(location, parts.length == 2 ? ident.name() : null, version, asOfMicros, options);
  }

  public TableSource source(Identifier ident) {
    return new Source(ident);
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

  final class Source extends TableSource {
    private final Identifier ident;

    Source(Identifier ident) {
      super(NamedCatalog.this.planner);
      this.ident = ident;
    }

    String name() {
      return name + "." + TableName.text(ident);
    }

    String metadataLocation() {
      ObjectNode question = Bridge.question("find");
      addTarget(question);
      JsonNode location = planner.ask(question).header().get("metadata_location");
      return location.isNull() ? null : location.asText();
    }

    void addCatalog(ObjectNode question) {
      question.set("catalog", number());
    }

    void addTarget(ObjectNode question) {
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

  // ------------------------------------------------------------------------------------------- functions

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

  // --------------------------------------------------------------------------------------------- refused

  public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    throw refusal(ident, "CREATE TABLE");
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    throw refusal(ident, "CREATE TABLE");
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    if (Statements.isStatement(changes)) {
      Statements.run(source(ident), changes);
      return loadTable(ident);
    }
    throw refusal(ident, "ALTER TABLE");
  }

  public boolean dropTable(Identifier ident) {
    throw refusal(ident, "DROP TABLE");
  }

  public boolean purgeTable(Identifier ident) {
    throw refusal(ident, "DROP TABLE PURGE");
  }

  public void renameTable(Identifier from, Identifier to) {
    throw refusal(from, "RENAME");
  }

  public void createNamespace(String[] namespace, Map metadata) {
    throw namespaceRefusal(namespace, "CREATE NAMESPACE");
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    throw namespaceRefusal(namespace, "ALTER NAMESPACE");
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw namespaceRefusal(namespace, "DROP NAMESPACE");
  }

  private RuntimeException namespaceRefusal(String[] namespace, String what) {
    return Bridge.failure("UnsupportedError: " + what + " from Spark is not supported for " + name + "."
        + TableName.text(TableName.of(namespace)) + ". Nothing was changed. Use the Python catalog instead"
        + " (load_catalog(...).create_namespace, update_namespace_properties, drop_namespace).", null);
  }

  private RuntimeException refusal(Identifier ident, String what) {
    return MetastoreRows.notWritable(name + "." + TableName.text(ident), what);
  }
}
