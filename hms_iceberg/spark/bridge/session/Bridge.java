package hms_iceberg.bridge.session;

import hms_iceberg.bridge.catalog.NamedCatalogs;
import hms_iceberg.bridge.procedures.GroupRewrites;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.PythonSocket;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.classic.SparkSession;

/** The one door through which Python puts the extension into a session. */
public final class Bridge {
  private Bridge() {}

  /**
   * A session that shares everything with the given one (context, shared state, settings, temporary views) and
   * also knows Iceberg tables. The given session itself is not changed.
   *
   * @param python where Python is reached, as its `BridgeServer` tells it
   */
  public static SparkSession extend(
      SparkSession session, Map properties, String python, SimplePythonFunction worker) throws IOException {
    Planner planner = planner(properties, python, worker);
    boolean done = false;
    try {
      SparkSession extended = ExtendedSession.of(session, new Extension(planner));
      done = true;
      return extended;
    } finally {
      if (!done) {
        planner.close();
      }
    }
  }

  private static Planner planner(Map properties, String python, SimplePythonFunction worker) throws IOException {
    String id = UUID.randomUUID().toString();
    return new Planner(id, new HashMap(properties), new PythonSocket(Json.read(python)), worker);
  }

  /** With what properties a session was extended; null where it was not. */
  public static Map properties(SparkSession session) {
    Extension extension = Extension.find(session.sessionState().conf());
    return extension == null ? null : extension.planner.properties;
  }

  /** The session that Spark gives to whoever asks for one. */
  public static void makeDefault(SparkSession session) {
    SparkSession.setDefaultSession(session);
    SparkSession.setActiveSession(session);
  }

  /**
   * Makes the tables of another metastore known under a name.
   *
   * @return false, and nothing is changed, if the session uses another catalog of that name already: Spark keeps it
   */
  public static boolean addCatalog(SparkSession session, String name, Map properties) {
    return NamedCatalogs.add(Extension.of(session.sessionState().conf()), session, name, properties);
  }

  /** Rewrites the groups of files that Python has planned, and asks it about each. */
  public static void rewrite(
      SparkSession session, String rewrite, String python, SimplePythonFunction worker) throws IOException {
    Planner planner = planner(new HashMap(), python, worker);
    try {
      new GroupRewrites(session, planner, Json.read(rewrite)).run();
    } finally {
      planner.close();
    }
  }
}
