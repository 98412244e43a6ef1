package hms_iceberg.bridge;

import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Servers that are made of Hive's (HiveThriftServer2) open sessions on threads whose class loader does not see the
 * bridge, and Spark loads catalogs with the thread's loader when they are first used.
 */
final class SessionThreads {
  private static final String PREFIX = "spark.sql.catalog.";

  private SessionThreads() {}

  static void loadCatalogs(SparkSession session) {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    if (sees(before)) {
      return;
    }
    thread.setContextClassLoader(SessionCatalog.class.getClassLoader());
    try {
      session.sessionState().catalogManager().v2SessionCatalog();
      Map settings = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
      for (Iterator it = settings.entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        if (NamedCatalog.class.getName().equals(entry.getValue())) {
          session.sessionState().catalogManager().catalog(((String) entry.getKey()).substring(PREFIX.length()));
        }
      }
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  private static boolean sees(ClassLoader loader) {
    try {
      return Class.forName(SessionCatalog.class.getName(), false, loader) == SessionCatalog.class;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
