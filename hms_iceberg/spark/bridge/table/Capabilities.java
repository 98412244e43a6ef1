package hms_iceberg.bridge.table;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;

/** What Spark may do with a table, some of which the table's properties decide. */
public final class Capabilities {
  private static final String[] ALWAYS = {
    "BATCH_READ", "BATCH_WRITE", "STREAMING_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC"
  };

  private Capabilities() {}

  /** A stream of a table that Spark does not read by itself is made of plans, as a source of an older kind. */
  public static Set of(Map properties, boolean isReadBySpark) {
    Set capabilities = new HashSet();
    if (isReadBySpark) {
      capabilities.add(TableCapability.MICRO_BATCH_READ);
    }
    for (int i = 0; i < ALWAYS.length; i++) {
      capabilities.add(TableCapability.valueOf(ALWAYS[i]));
    }
    if ("true".equalsIgnoreCase((String) properties.get("write.spark.accept-any-schema"))) {
      capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
    }
    if (!"false".equalsIgnoreCase((String) properties.get("write.spark.auto-schema-evolution.enabled"))) {
      addIfKnown("AUTOMATIC_SCHEMA_EVOLUTION", capabilities);
    }
    return capabilities;
  }

  /** Spark 4.0 knows fewer than later ones. */
  private static void addIfKnown(String name, Set capabilities) {
    TableCapability[] known = TableCapability.values();
    for (int i = 0; i < known.length; i++) {
      if (known[i].name().equals(name)) {
        capabilities.add(known[i]);
      }
    }
  }
}
