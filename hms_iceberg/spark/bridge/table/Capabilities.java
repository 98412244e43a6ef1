package hms_iceberg.bridge.table;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;

/** What Spark may do with a table, some of which the table's properties decide. */
public final class Capabilities {
  private static final String[] ALWAYS = {
    "BATCH_READ", "MICRO_BATCH_READ", "BATCH_WRITE", "STREAMING_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC"
  };

  private Capabilities() {}

  public static Set of(Map properties) {
    Set capabilities = new HashSet();
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
