package hms_iceberg.bridge;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogWithListener;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.hive.HiveExternalCatalog;
import org.apache.spark.sql.hive.client.RawHiveTable;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's session catalog, in which a row of the metastore with table_type=ICEBERG is an Iceberg table and
 * everything else is what it was. Because an Iceberg table never comes out of here as a Hive table, no Hive
 * reader, writer or DDL command can reach its files.
 */
public final class SessionCatalog extends DelegatingCatalogExtension {
  static final String INNER_CLASS = "spark.hms_iceberg.inner-session-catalog";

  /** The metadata location of each table that the current query has used: one snapshot for all its references. */
  private static final ThreadLocal SEEN = new ThreadLocal();

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    String location = metadataLocation(ident);
    return location == null ? super.loadTable(ident) : IcebergTable.load(name(ident), location, null, null);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    String location = metadataLocation(ident);
    return location == null
        ? super.loadTable(ident, version)
        : IcebergTable.load(name(ident), location, version, null);
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    String location = metadataLocation(ident);
    return location == null
        ? super.loadTable(ident, timestamp)
        : IcebergTable.load(name(ident), location, null, Long.valueOf(timestamp));
  }

  public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
    if (metadataLocation(ident) != null) {
      throw notWritable(ident, "Writing to it (" + privileges + ")");
    }
    return super.loadTable(ident, privileges);
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    if (metadataLocation(ident) != null) {
      throw notWritable(ident, "ALTER TABLE");
    }
    return super.alterTable(ident, changes);
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    if (metadataLocation(from) != null) {
      throw notWritable(from, "RENAME");
    }
    super.renameTable(from, to);
  }

  private static RuntimeException notWritable(Identifier ident, String what) {
    return Bridge.failure("UnsupportedError: " + what + " from Spark SQL is not supported for the Iceberg table "
        + name(ident) + ": this session reads Iceberg tables. Nothing was changed. Use the Python catalog"
        + " instead (load_catalog(...).load_table(\"" + name(ident) + "\") and then append, overwrite, delete,"
        + " update_schema, transaction; or load_catalog(...).rename_table).", null);
  }

  private static String name(Identifier ident) {
    StringBuilder name = new StringBuilder();
    String[] namespace = ident.namespace();
    for (int i = 0; i < namespace.length; i++) {
      name.append(namespace[i]).append('.');
    }
    return name.append(ident.name()).toString();
  }

  /** Where the table's current metadata is, or null where the row is not an Iceberg table. */
  private String metadataLocation(Identifier ident) throws NoSuchTableException {
    if (ident.namespace().length != 1) {
      return null;
    }
    Map seen = seenInThisQuery();
    String key = name(ident).toLowerCase(Locale.ROOT);
    if (seen.containsKey(key)) {
      return (String) seen.get(key);
    }
    Map parameters = parameters(ident);
    String location = null;
    if (parameters != null && "iceberg".equalsIgnoreCase((String) parameters.get("table_type"))) {
      location = (String) parameters.get("metadata_location");
      if (location == null) {
        throw Bridge.failure("CorruptMetadataError: the metastore says that " + name(ident) + " is an Iceberg table"
            + " (table_type=ICEBERG) but has no metadata_location for it. Set the parameter to the table's newest"
            + " metadata file, or drop the row and register the table again.", null);
      }
    }
    seen.put(key, location);
    return location;
  }

  /** The row's parameters straight from the metastore, so that columns or classes Spark cannot parse do no harm. */
  private Map parameters(Identifier ident) throws NoSuchTableException {
    ExternalCatalog external = ((SparkSession) SparkSession.active()).sharedState().externalCatalog();
    if (external instanceof ExternalCatalogWithListener) {
      external = ((ExternalCatalogWithListener) external).unwrapped();
    }
    if (external instanceof HiveExternalCatalog) {
      String database = ident.namespace()[0].toLowerCase(Locale.ROOT);
      Option raw = ((HiveExternalCatalog) external).client()
          .getRawHiveTableOption(database, ident.name().toLowerCase(Locale.ROOT));
      return raw.isEmpty() ? null : CollectionConverters.asJava(((RawHiveTable) raw.get()).hiveTableProps());
    }
    Table table = super.loadTable(ident);
    return table instanceof V1Table ? table.properties() : null;
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
}
