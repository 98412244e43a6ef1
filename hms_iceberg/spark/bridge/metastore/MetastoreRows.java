package hms_iceberg.bridge.metastore;

import hms_iceberg.bridge.wire.Failures;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogWithListener;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.hive.HiveExternalCatalog;
import org.apache.spark.sql.hive.client.RawHiveTable;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Rows of the metastore as they are, through Spark's own client of it. */
public final class MetastoreRows {
  private MetastoreRows() {}

  /** The row's parameters, so that columns or classes Spark cannot parse do no harm; null if there is no row. */
  public static Map parameters(String database, String table) {
    ExternalCatalog external = ((SparkSession) SparkSession.active()).sharedState().externalCatalog();
    if (external instanceof ExternalCatalogWithListener) {
      external = ((ExternalCatalogWithListener) external).unwrapped();
    }
    if (!(external instanceof HiveExternalCatalog)) {
      return null;
    }
    Option raw = ((HiveExternalCatalog) external).client()
        .getRawHiveTableOption(database.toLowerCase(Locale.ROOT), table.toLowerCase(Locale.ROOT));
    return raw.isEmpty() ? null : CollectionConverters.asJava(((RawHiveTable) raw.get()).hiveTableProps());
  }

  public static boolean isIceberg(Map parameters) {
    return parameters != null && "iceberg".equalsIgnoreCase((String) parameters.get("table_type"));
  }

  public static boolean isIcebergView(Map parameters) {
    return parameters != null && "iceberg-view".equalsIgnoreCase((String) parameters.get("table_type"));
  }

  public static RuntimeException notWritable(String name, String what) {
    return Failures.of("UnsupportedError: " + what + " in this way is not supported for the Iceberg table " + name
        + ". Nothing was changed. Use writeTo(...), insertInto, or the Python catalog (load_catalog(...).load_table(\""
        + name + "\") and then append, overwrite, delete).", null);
  }

  /** For saveAsTable of another format, or of none. */
  public static RuntimeException notReplaceable(String table) {
    String name = table.replaceFirst("^spark_catalog\\.", "");
    return Failures.of("UnsupportedError: saveAsTable would put a table of another format, or other partitions, in the"
        + " place of the Iceberg table " + name + ". Nothing was changed. Say format(\"iceberg\"), or use insertInto or"
        + " writeTo(\"" + name + "\").", null);
  }
}
