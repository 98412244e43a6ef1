package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.ref.Cleaner;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.UUID;
import java.util.WeakHashMap;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * The transactions on several tables that sessions have open, by what Python calls them. A copy of a session, in which Spark
 * makes what is cached, is in the same transaction: it has the same setting. No other session can guess that.
 */
public final class OpenTransactions {
  private static final String TOKEN = "spark.hms_iceberg.transaction";

  private static final Cleaner CLEANER = Cleaner.create();

  private final Map open = Collections.synchronizedMap(new WeakHashMap());

  /** That of a session; null if it has none open. */
  public JsonNode of(SparkSession session) {
    Open own = (Open) open.get(session);
    return own != null ? own.number : ofToken(session.sessionState().conf().getConfString(TOKEN, null));
  }

  private JsonNode ofToken(String token) {
    synchronized (open) {
      for (Iterator it = open.values().iterator(); token != null && it.hasNext();) {
        Open each = (Open) it.next();
        if (each.token.equals(token)) {
          return each.number;
        }
      }
    }
    return null;
  }

  /**
   * That of the session which runs a statement in this thread; null if it has none open. A thread of no session, such as
   * one that waits for a server, is not one of the default session.
   */
  public JsonNode active() {
    if (open.isEmpty()) {
      return null;
    }
    Option session = SparkSession.getActiveSession();
    return session.isEmpty() ? null : of((SparkSession) session.get());
  }

  /** The session has begun one. It is given up if the session is garbage, sooner or later, before that has ended. */
  public void begin(SparkSession session, JsonNode number, Planner planner) {
    Open begun = new Open(number);
    open.put(session, begun);
    CLEANER.register(session, new Gone(planner, number));
    session.sessionState().conf().setConfString(TOKEN, begun.token);
  }

  public void end(SparkSession session) {
    open.remove(session);
    session.sessionState().conf().unsetConf(TOKEN);
  }

  static final class Gone implements Runnable {
    private final Planner planner;
    private final JsonNode number;

    Gone(Planner planner, JsonNode number) {
      this.planner = planner;
      this.number = number;
    }

    public void run() {
      ObjectNode question = Planner.question("give-up-transaction");
      question.set("number", number);
      try {
        planner.ask(question);
      } catch (Exception e) {
        LoggerFactory.getLogger(OpenTransactions.class).debug("A transaction of a session that has gone was not given up", e);
      }
    }
  }

  static final class Open {
    final JsonNode number;
    final String token = UUID.randomUUID().toString();

    Open(JsonNode number) {
      this.number = number;
    }
  }
}
