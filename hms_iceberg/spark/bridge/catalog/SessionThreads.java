package hms_iceberg.bridge.catalog;

import hms_iceberg.bridge.wire.Extension;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/** What Spark takes from the thread that asks, and a thread that did not make the session has otherwise. */
public final class SessionThreads {
  private static final String PREFIX = "spark.sql.catalog.";

  private SessionThreads() {}

  /** Called by what users' threads call first. */
  public static void enter(SparkSession session) {
    giveSettings(session);
    loadCatalogs(session);
  }

  /**
   * A thread in which no session is active has settings of its own, Spark's defaults. It gets those of the session: by
   * them Spark finds catalogs for whatever it does before it runs a query.
   */
  private static void giveSettings(SparkSession session) {
    SQLConf given = session.sessionState().conf();
    SQLConf own = SQLConf.getFallbackConf();
    if (SQLConf.get() == own && Extension.find(given) != null) {
      own.settings().clear();
      own.settings().putAll(given.settings());
    }
  }

  /**
   * Servers that are made of Hive's (HiveThriftServer2) open sessions on threads whose class loader does not see the
   * bridge, and Spark loads catalogs with the thread's loader when they are first used.
   */
  private static void loadCatalogs(SparkSession session) {
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
