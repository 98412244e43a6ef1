package hms_iceberg.bridge.metastore;

import hms_iceberg.bridge.wire.Failures;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Identifier;

/** Janino cannot call Identifier.of. */
public final class TableName implements Identifier {
  private final String[] namespace;
  private final String name;

  public TableName(String[] namespace, String name) {
    this.namespace = namespace;
    this.name = name;
  }

  /** All but the last of some parts is the namespace. */
  public static TableName of(String[] parts) {
    return new TableName((String[]) Arrays.copyOf(parts, parts.length - 1), parts[parts.length - 1]);
  }

  public String[] namespace() {
    return namespace;
  }

  public String name() {
    return name;
  }

  public String toString() {
    return text(this);
  }

  /** The one namespace that a table of a metastore is in. */
  public static String database(Identifier ident) {
    if (ident.namespace().length != 1) {
      throw Failures.of("InvalidInputError: " + text(ident) + " is not the name of a table. Expected a namespace and a"
          + " name, such as db.events: a Hive Metastore has one level of namespaces.", null);
    }
    return ident.namespace()[0];
  }

  /** With dots, as users write it. */
  public static String text(Identifier ident) {
    StringBuilder text = new StringBuilder();
    String[] namespace = ident.namespace();
    for (int i = 0; i < namespace.length; i++) {
      text.append(namespace[i]).append('.');
    }
    return text.append(ident.name()).toString();
  }
}
