package hms_iceberg.bridge.catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.tables.TableVersions;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.TableSource;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import scala.jdk.javaapi.CollectionConverters;

/** Reads by the options of a reader: of tables by their name, as SQL finds them, and of tables by their path. */
public final class TableReads {
  private TableReads() {}

  /**
   * The table that spark.read.format("iceberg").load(...) names: db.t, db.t.files, catalog.db.t, a table's folder or
   * metadata file, one of the two with #files after it.
   */
  public static Table load(String text, String version, Long asOfMicros, Map options) {
    SparkSession session = session();
    if (text.indexOf('/') >= 0) {
      int kind = text.indexOf('#');
      Path path = new Path(kind < 0 ? text : text.substring(0, kind));
      return TableVersions.load(
          path, path.metadataLocation(), kind < 0 ? null : text.substring(kind + 1), version, asOfMicros, options);
    }
    Table table = byName(session, parts(session, text), version, asOfMicros, options);
    if (table == null) {
      throw Failures.of("NoSuchTableError: there is no Iceberg table " + text + ". If it is a table of another"
          + " format, read it with spark.table; a table by its path has a slash in its name.", null);
    }
    return table;
  }

  /** That of the thread, or the default one. */
  private static SparkSession session() {
    SparkSession session = (SparkSession) SparkSession.active();
    SessionThreads.enter(session);
    return session;
  }

  private static String[] parts(SparkSession session, String text) {
    try {
      List parts = CollectionConverters.asJava(session.sessionState().sqlParser().parseMultipartIdentifier(text));
      return (String[]) parts.toArray(new String[0]);
    } catch (Exception e) {
      throw Failures.of("InvalidInputError: cannot read " + text + " as an Iceberg table: it is neither a name"
          + " (db.t, db.t.files) nor a path (with a slash in it). " + e.getMessage(), e);
    }
  }

  /** The catalog of a name; for a path, any that has the functions that a write needs. */
  public static CatalogPlugin catalog(String text) {
    SparkSession session = session();
    CatalogManager catalogs = session.sessionState().catalogManager();
    if (text.indexOf('/') >= 0) {
      return catalogs.v2SessionCatalog();
    }
    return catalog(catalogs, parts(session, text));
  }

  /** That of the current view, or of the session, if the name says none. */
  private static CatalogPlugin catalog(CatalogManager catalogs, String[] parts) {
    if (parts.length > 1 && catalogs.isCatalogRegistered(parts[0])) {
      return catalogs.catalog(parts[0]);
    }
    List view = CollectionConverters.asJava(AnalysisContext.get().catalogAndNamespace());
    return view.isEmpty() ? catalogs.currentCatalog() : catalogs.catalog((String) view.get(0));
  }

  /** A name without its catalog. */
  public static Identifier ident(String text) {
    if (text.indexOf('/') >= 0) {
      return new TableName(new String[0], text);
    }
    SparkSession session = session();
    return ident(session.sessionState().catalogManager(), parts(session, text));
  }

  private static Identifier ident(CatalogManager catalogs, String[] parts) {
    if (parts.length > 1) {
      return TableName.of(catalogs.isCatalogRegistered(parts[0])
          ? (String[]) Arrays.copyOfRange(parts, 1, parts.length) : parts);
    }
    List view = CollectionConverters.asJava(AnalysisContext.get().catalogAndNamespace());
    String[] current = view.isEmpty() ? catalogs.currentNamespace()
        : (String[]) view.subList(1, view.size()).toArray(new String[0]);
    return new TableName(current, parts[0]);
  }

  /** Null if the name is not one of an Iceberg table of ours. */
  public static Table byName(SparkSession session, String[] parts, String version, Long asOfMicros, Map options) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    CatalogPlugin catalog = catalog(catalogs, parts);
    return catalog instanceof IcebergCatalog
        ? ((IcebergCatalog) catalog).load(ident(catalogs, parts), version, asOfMicros, options) : null;
  }

  /** A table in a folder, or a metadata file. */
  public static final class Path extends TableSource {
    private final String path;

    public Path(String path) {
      super(Extension.activePlanner());
      this.path = path;
    }

    public String name() {
      return path;
    }

    public String metadataLocation() {
      ObjectNode question = Planner.question("find");
      question.put("path", path);
      return planner.ask(question).header().get("metadata_location").asText();
    }

    public void addTarget(ObjectNode question) {
      question.put("path", path);
    }
  }
}
