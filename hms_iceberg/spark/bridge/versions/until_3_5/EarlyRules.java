package hms_iceberg.bridge.session;

import java.lang.reflect.Field;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.internal.SessionState;

/** Rules that come before the resolution of names, which Spark takes since 4.0. */
final class EarlyRules {
  private EarlyRules() {}

  /** Spark takes none; `complete` gives them to each session. */
  static void inject(SparkSessionExtensions extensions, List rules) {}

  static void complete(SparkSession session, List early) {
    Analyzer analyzer = session.sessionState().analyzer();
    if (analyzer instanceof EarlyAnalyzer) {
      return;
    }
    try {
      Field held = SessionState.class.getDeclaredField("analyzer");
      held.setAccessible(true);
      held.set(session.sessionState(), new EarlyAnalyzer(analyzer, session, early));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + SessionState.class, e);
    }
  }
}
