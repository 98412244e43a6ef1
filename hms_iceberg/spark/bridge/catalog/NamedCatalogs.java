package hms_iceberg.bridge.catalog;

import hms_iceberg.bridge.wire.Extension;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The settings of named catalogs. */
public final class NamedCatalogs {
  private static final String PREFIX = "spark.sql.catalog.";
  private static final String OF_JAVA = "org.apache.iceberg.spark.SparkCatalog";

  private NamedCatalogs() {}

  public static boolean add(Extension extension, SparkSession session, String name, Map properties) {
    Map settings = new HashMap();
    for (Iterator it = properties.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      settings.put(entry.getKey(), String.valueOf(entry.getValue()));
    }
    CatalogManager manager = session.sessionState().catalogManager();
    if (manager.listCatalogs(Option.empty()).contains(name)) {
      CatalogPlugin used = manager.catalog(name);
      if (!(used instanceof NamedCatalog && ((NamedCatalog) used).has(settings))) {
        return false;
      }
    }
    for (Iterator it = settings.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      extension.set(session, PREFIX + name + "." + entry.getKey(), (String) entry.getValue());
    }
    extension.set(session, PREFIX + name, NamedCatalog.class.getName());
    return true;
  }

  /** Catalogs that were set up for Iceberg's JAR are ours if there is no such JAR. */
  public static void adopt(Extension extension, SparkSession extended) {
    if (isPresent(OF_JAVA)) {
      return;
    }
    Map settings = CollectionConverters.asJava(extended.sessionState().conf().getAllConfs());
    for (Iterator it = settings.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      String key = (String) entry.getKey();
      if (key.startsWith(PREFIX) && key.indexOf('.', PREFIX.length()) < 0 && OF_JAVA.equals(entry.getValue())) {
        extension.set(extended, key, NamedCatalog.class.getName());
      }
    }
  }

  /** Settings for Iceberg's JAR may be there without it; any other class that is missing is for Spark to report. */
  static boolean isHere(String catalogClass) {
    return !catalogClass.startsWith("org.apache.iceberg.") || isPresent(catalogClass);
  }

  private static boolean isPresent(String name) {
    try {
      Class.forName(name, false, Thread.currentThread().getContextClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
