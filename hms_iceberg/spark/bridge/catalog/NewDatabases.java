package hms_iceberg.bridge.catalog;

import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.internal.StaticSQLConf$;

/**
 * Where new databases are, if neither the statement nor the session says so: beside the metastore's database default.
 * Spark would take a folder of the directory that the driver was started in, which nobody else reaches.
 */
final class NewDatabases {
  private static final String DEFAULT = "default";

  private NewDatabases() {}

  /** The properties of a new database, with a location if Spark's own would be of this directory. */
  static Map located(String[] namespace, Map metadata) {
    SparkSession session = (SparkSession) SparkSession.active();
    boolean isTold = metadata.containsKey(SupportsNamespaces.PROP_LOCATION) || namespace.length != 1;
    String warehouse = isTold || !isOfThisDirectory(session) ? null : warehouse(session);
    if (warehouse == null) {
      return metadata;
    }
    Map located = new HashMap(metadata);
    located.put(SupportsNamespaces.PROP_LOCATION, new Path(warehouse, namespace[0] + ".db").toString());
    return located;
  }

  private static boolean isOfThisDirectory(SparkSession session) {
    String unset = StaticSQLConf$.MODULE$.WAREHOUSE_PATH().defaultValueString();
    return path(session.sessionState().conf().warehousePath()).equals(path(unset));
  }

  private static String path(String location) {
    return new Path(location).toUri().getPath();
  }

  /** Null if the metastore has no such database, or does not show it to this user. */
  private static String warehouse(SparkSession session) {
    try {
      return session.sharedState().externalCatalog().getDatabase(DEFAULT).locationUri().toString();
    } catch (Exception e) {
      return null;
    }
  }
}
