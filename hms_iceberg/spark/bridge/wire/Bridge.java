package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.function.Function;
import org.apache.spark.QueryContext;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.runtime.AbstractFunction1;

/**
 * The one door between the JVM and Python: it puts the extension into a session and carries questions to the
 * planner. A question and its answer cross once a table or once a scan, never once a file.
 */
public final class Bridge {
  public static final ObjectMapper JSON = new ObjectMapper();
  static final String CATALOG = "spark.sql.catalog.spark_catalog";

  // Py4J keeps a connection for every JVM thread that ever called Python, and Spark plans many a query in a new
  // thread: these few call on behalf of all.
  private static final ExecutorService CALLERS = Executors.newFixedThreadPool(4, new DaemonThreads());

  private static final BoundedCache ANSWERS = new BoundedCache(Runtime.getRuntime().maxMemory() / 32);

  private static volatile Function planner;
  private static volatile int generation;
  private static volatile SimplePythonFunction worker;

  private Bridge() {}

  /**
   * A session that shares everything with the given one (context, shared state, settings, temporary views) and
   * also knows Iceberg tables. The given session itself is not changed.
   */
  public static SparkSession extend(SparkSession session, Function planner, SimplePythonFunction worker) {
    Bridge.planner = planner;
    Bridge.generation++;
    Bridge.worker = worker;
    String catalogClass = SessionCatalog.class.getName();
    String before = session.sessionState().conf().getConfString(CATALOG, "builtin");
    if (catalogClass.equals(before)) {
      return session;
    }
    SparkSessionExtensions extensions = session.extensions();
    extensions.injectPreCBORule(new RuleBuilder(false));
    extensions.injectResolutionRule(new RuleBuilder(true));
    extensions.injectHintResolutionRule(new HintRuleBuilder());
    SparkSession extended = session.cloneSession();
    setForSession(session, extended, SessionCatalog.INNER_CLASS, before);
    setForSession(session, extended, CATALOG, catalogClass);
    NamedCatalogs.adopt(session, extended);
    return extended;
  }

  /** Makes the tables of another metastore known under a name; a catalog of that name that is in use stays. */
  public static void addCatalog(SparkSession session, String name, Map properties) {
    NamedCatalogs.add(session, name, properties);
  }

  /** The shared state's settings are where newSession() starts from. */
  static void setForSession(SparkSession session, SparkSession extended, String key, String value) {
    session.sharedState().conf().set(key, value);
    extended.sessionState().conf().setConfString(key, value);
  }

  public static boolean isExtended(SparkSession session) {
    String current = session.sessionState().conf().getConfString(CATALOG, "builtin");
    return SessionCatalog.class.getName().equals(current) && planner != null;
  }

  /** Asks Python; the answer is a JSON header, and for a scan what follows it. */
  static Answer ask(ObjectNode question) {
    return new Answer(answer(question.toString()));
  }

  /**
   * Asks what has one answer for ever, as everything has that only depends on a metadata file. What was made of the
   * answer is kept, so that the next query asks nobody.
   */
  static Object askOnce(ObjectNode question, AnswerReader reader) {
    String text = question.toString();
    try {
      return ANSWERS.get(generation + text, new Asking(text, reader));
    } catch (Exception e) {
      throw unchecked(e);
    }
  }

  private static byte[] answer(String question) {
    Function asked = planner;
    if (asked == null) {
      throw failure("No planner is registered with this JVM: call hms_iceberg.spark.extend(spark) again.", null);
    }
    byte[] answered;
    try {
      answered = (byte[]) CALLERS.submit(new Call(asked, question)).get();
    } catch (Exception thrown) {
      Throwable e = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
      throw failure("The Iceberg planner in Python did not answer: " + e.getMessage()
          + " (if the Python process was restarted, call hms_iceberg.spark.extend(spark) again)", e);
    }
    JsonNode error = new Answer(answered).header().get("error");
    if (error != null) {
      throw failure(error.get("type").asText() + ": " + error.get("message").asText(), null);
    }
    return answered;
  }

  /** A function of this process, from which others take how Python workers are started. */
  static SimplePythonFunction worker() {
    return worker;
  }

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

  private static RuntimeException unchecked(Exception exception) {
    Bridge.sneak(exception);
    return new RuntimeException(exception);
  }

  private static void sneak(Exception exception) {
    org.apache.spark.unsafe.Platform.throwException(exception);
  }

  static final class Call implements Callable {
    private final Function asked;
    private final String question;

    Call(Function asked, String question) {
      this.asked = asked;
      this.question = question;
    }

    public Object call() {
      return asked.apply(question);
    }
  }

  /** Makes something that does not change out of an answer. */
  interface AnswerReader {
    Object read(Answer answer);
  }

  static final class Asking implements BoundedCache.Loader {
    private static final int BYTES_PER_BYTE = 4; // of objects, for what comes as packed text

    private final String question;
    private final AnswerReader reader;
    private long bytes;

    Asking(String question, AnswerReader reader) {
      this.question = question;
      this.reader = reader;
    }

    public Object load() {
      byte[] answered = answer(question);
      bytes = BYTES_PER_BYTE * (long) (answered.length + question.length());
      return reader.read(new Answer(answered));
    }

    public long bytes() {
      return bytes;
    }
  }

  static final class DaemonThreads implements ThreadFactory {
    public Thread newThread(Runnable task) {
      Thread thread = new Thread(task, "hms_iceberg-planner");
      thread.setDaemon(true);
      return thread;
    }
  }

  static final class RuleBuilder extends AbstractFunction1 {
    private final boolean resolution;

    RuleBuilder(boolean resolution) {
      this.resolution = resolution;
    }

    public Object apply(Object session) {
      return resolution ? (Rule) new RefuseWrites((SparkSession) session) : (Rule) new PlanScans((SparkSession) session);
    }
  }

  static final class HintRuleBuilder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new OptionsOfReads((SparkSession) session);
    }
  }
}
