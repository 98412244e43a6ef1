package hms_iceberg.bridge.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.ddl.Alterations;
import hms_iceberg.bridge.ddl.Definitions;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.tables.StagedIcebergTable;
import hms_iceberg.bridge.tables.TableVersions;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.TableSource;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;

/** Makes, changes and drops the Iceberg tables of a catalog: Python does, as it does from Python. */
final class TableDefinitions {
  public static final String CREATE = "create";
  static final String REPLACE = "replace";
  static final String CREATE_OR_REPLACE = "create-or-replace";

  private final IcebergCatalog catalog;

  TableDefinitions(IcebergCatalog catalog) {
    this.catalog = catalog;
  }

  public Table create(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    TableSource source = catalog.source(ident);
    ObjectNode question = Definitions.define(source.change("create-table"), columns, partitions, properties);
    return TableVersions.load(source, ask(question, ident).get("metadata_location").asText(), null, null, null, null);
  }

  /** A table that appears, or changes, with the rows that are written into it: all at once, or not at all. */
  StagedTable stage(String kind, Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
    TableSource source = catalog.source(ident);
    ObjectNode question = Definitions.define(source.change("stage-table"), columns, partitions, properties);
    question.put("kind", kind);
    JsonNode answer = ask(question, ident);
    return new StagedIcebergTable(source, answer.get("staged"), answer.get("description"));
  }

  public Table alter(Identifier ident, IcebergTable table, TableChange[] changes) {
    TableSource source = catalog.source(ident);
    ask(Alterations.alter(source.change("alter-table"), table.schema(), changes), ident);
    SessionCatalog.pinAnew(source);
    return TableVersions.load(source, source.metadataLocation(), null, null, null, null);
  }

  public boolean drop(Identifier ident, boolean purge) {
    ObjectNode question = catalog.source(ident).change("drop-table");
    question.put("purge", purge);
    return ask(question, ident).get("dropped").asBoolean();
  }

  public void rename(Identifier from, Identifier to) {
    ObjectNode question = catalog.source(from).change("rename-table");
    String[] namespace = to.namespace();
    if (namespace.length == 2 && !namespace[0].equals(catalog.name())) {
      throw Failures.of("UnsupportedError: Cannot move the table " + catalog.source(from).name() + " to "
          + TableName.text(to) + ": a table is renamed within its catalog, which is " + catalog.name() + ". Nothing was"
          + " changed.", null);
    }
    String[] parts = new String[namespace.length + 1];
    System.arraycopy(namespace, 0, parts, 0, namespace.length);
    parts[namespace.length] = to.name();
    question.set("to", Json.MAPPER.valueToTree(parts));
    ask(question, from, to);
  }

  private JsonNode ask(ObjectNode question, Identifier ident) {
    return ask(question, ident, ident);
  }

  /** Some errors are exceptions of Spark's own, by which its commands go on. */
  private JsonNode ask(ObjectNode question, Identifier ident, Identifier taken) {
    try {
      return catalog.source(ident).planner.ask(question).header();
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw Failures.unchecked(named(e, ident, taken));
    }
  }

  private static Exception named(Exception e, Identifier ident, Identifier taken) {
    String message = String.valueOf(e.getMessage());
    if (message.startsWith("TableAlreadyExistsError: ")) {
      return new TableAlreadyExistsException(taken);
    }
    if (message.startsWith("NoSuchTableError: ")) {
      return new NoSuchTableException(ident);
    }
    if (message.startsWith("NoSuchNamespaceError: ")) {
      return new NoSuchNamespaceException(taken.namespace());
    }
    return e;
  }
}
