package hms_iceberg.bridge.procedures;

import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.jdk.javaapi.CollectionConverters;

/** The table that the argument of a procedure names: in the procedure's catalog, whether or not that is in the name. */
final class TableArgument {
  private TableArgument() {}

  static Identifier resolve(SparkSession session, IcebergCatalog catalog, String text) {
    String[] parts = parts(session, text);
    CatalogManager manager = session.sessionState().catalogManager();
    if (parts.length > 1 && manager.isCatalogRegistered(parts[0])) {
      if (!parts[0].equals(((CatalogPlugin) catalog).name())) {
        throw Failures.of("InvalidInputError: Cannot run procedure in catalog '" + ((CatalogPlugin) catalog).name()
            + "': '" + text + "' is a table in catalog '" + parts[0] + "'. Call the procedure of that catalog.", null);
      }
      parts = (String[]) Arrays.copyOfRange(parts, 1, parts.length);
    }
    return parts.length == 1 ? new TableName(currentNamespace(session, catalog), parts[0]) : TableName.of(parts);
  }

  /** The table's whole name, as SQL writes it. */
  static String qualified(CatalogPlugin catalog, Identifier table) {
    StringBuilder name = new StringBuilder(quoted(catalog.name()));
    String[] namespace = table.namespace();
    for (int i = 0; i < namespace.length; i++) {
      name.append('.').append(quoted(namespace[i]));
    }
    return name.append('.').append(quoted(table.name())).toString();
  }

  private static String quoted(String part) {
    return "`" + part.replace("`", "``") + "`";
  }

  private static String[] parts(SparkSession session, String text) {
    if (text.trim().isEmpty()) {
      throw Failures.of("InvalidInputError: Cannot handle an empty identifier for parameter 'table': expected the name"
          + " of a table, such as db.events.", null);
    }
    try {
      List parts = CollectionConverters.asJava(session.sessionState().sqlParser().parseMultipartIdentifier(text));
      return (String[]) parts.toArray(new String[0]);
    } catch (Exception e) {
      throw Failures.of("InvalidInputError: Cannot parse identifier for parameter 'table': " + text + " ("
          + e.getMessage().trim() + ")", e);
    }
  }

  public static String[] currentNamespace(SparkSession session, IcebergCatalog catalog) {
    CatalogManager manager = session.sessionState().catalogManager();
    return manager.currentCatalog() == catalog
        ? manager.currentNamespace() : ((CatalogPlugin) catalog).defaultNamespace();
  }
}
