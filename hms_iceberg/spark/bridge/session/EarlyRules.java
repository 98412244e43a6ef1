package hms_iceberg.bridge.session;

import java.lang.reflect.Field;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;

/** Rules that come before the resolution of names. Spark 3.5 takes none: it has a file of this name of its own. */
final class EarlyRules {
  private EarlyRules() {}

  /** Makes them known to the sessions of these extensions. */
  static void inject(SparkSessionExtensions extensions, List rules) {
    for (int i = 0; i < rules.size(); i++) {
      extensions.injectHintResolutionRule((Function1) rules.get(i));
    }
  }

  /** Early releases of Spark 4.0 forget them if Hive support is enabled. */
  static void complete(SparkSession session, List early) {
    Analyzer analyzer = session.sessionState().analyzer();
    if (analyzer.hintResolutionRules().isEmpty()) {
      try {
        Field rules = Analyzer.class.getDeclaredField("hintResolutionRules");
        rules.setAccessible(true);
        rules.set(analyzer, session.extensions().buildHintResolutionRules(session));
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("This version of Spark is not supported: " + Analyzer.class, e);
      }
    }
  }
}
