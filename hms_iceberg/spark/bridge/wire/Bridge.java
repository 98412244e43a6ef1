package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.QueryContext;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Map$;

/** The one door through which Python puts the extension into a session. */
public final class Bridge {
  public static final ObjectMapper JSON = new ObjectMapper();

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
      SparkSession extended = new Extension(planner).extended(session);
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

  /** Asks for the session that runs a query in this thread. */
  static Answer ask(ObjectNode question) {
    return Extension.active().planner.ask(question);
  }

  /** The same for what has one answer for ever. */
  static Object askOnce(ObjectNode question, Planner.AnswerReader reader) {
    return Extension.active().planner.askOnce(question, reader);
  }

  interface AnswerReader extends Planner.AnswerReader {}

  static ObjectNode question(String call) {
    ObjectNode node = JSON.createObjectNode();
    node.put("call", call);
    return node;
  }

  /** An AnalysisException, which Scala declares unchecked and PySpark turns into its own typed error. */
  static RuntimeException failure(String message, Throwable cause) {
    Option none = Option.empty();
    AnalysisException exception = new AnalysisException(
        message, none, none, Option.apply(cause), none, Map$.MODULE$.empty(), new QueryContext[0]);
    return Bridge.unchecked(exception);
  }

  static RuntimeException unchecked(Exception exception) {
    Bridge.sneak(exception);
    return new RuntimeException(exception);
  }

  private static void sneak(Exception exception) {
    org.apache.spark.unsafe.Platform.throwException(exception);
  }
}
