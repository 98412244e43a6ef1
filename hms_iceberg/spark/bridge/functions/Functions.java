package hms_iceberg.bridge.functions;

import hms_iceberg.bridge.metastore.TableName;
import java.util.Locale;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/**
 * The functions of a catalog's namespace system: Iceberg's transforms, and the version. Spark itself looks for
 * transforms, to distribute and sort what is written, in an empty namespace.
 */
public final class Functions {
  private static final String[] NAMES = {"bucket", "truncate", "years", "months", "days", "hours", "iceberg_version"};

  private Functions() {}

  public static boolean isNamespace(String[] namespace) {
    return namespace.length == 0 || isSystem(namespace);
  }

  public static boolean isSystem(String[] namespace) {
    return namespace.length == 1 && "system".equalsIgnoreCase(namespace[0]);
  }

  /** Null if there is no such function. */
  public static UnboundFunction load(Identifier ident) {
    String name = ident.name().toLowerCase(Locale.ROOT);
    for (int i = 0; isNamespace(ident.namespace()) && i < NAMES.length; i++) {
      if (NAMES[i].equals(name)) {
        return new Unbound(name);
      }
    }
    return null;
  }

  public static Identifier[] list(String[] namespace) {
    Identifier[] idents = new Identifier[NAMES.length];
    for (int i = 0; i < idents.length; i++) {
      idents[i] = new TableName(namespace, NAMES[i]);
    }
    return idents;
  }
}
