package hms_iceberg.bridge.session;

import hms_iceberg.bridge.until_3_5.CollectionConverters;
import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.rules.RuleExecutor;
import scala.Function1;
import scala.collection.Seq;

/**
 * A session's analyzer with rules that come before the resolution of names, which Spark takes since 4.0, and with
 * `MetadataOfRows`.
 */
public final class EarlyAnalyzer extends Analyzer {
  private static final String BEFORE = "Resolution";
  private static final String REWRITE = "DML rewrite";

  private final Analyzer given;
  private final List early = new ArrayList();

  public EarlyAnalyzer(Analyzer given, SparkSession session, List builders) {
    super(given.catalogManager());
    this.given = given;
    for (Iterator it = builders.iterator(); it.hasNext();) {
      early.add(((Function1) it.next()).apply(session));
    }
  }

  public Seq extendedResolutionRules() {
    return given.extendedResolutionRules();
  }

  public Seq postHocResolutionRules() {
    return given.postHocResolutionRules();
  }

  public Seq extendedCheckRules() {
    return given.extendedCheckRules();
  }

  public Seq batches() {
    List batches = new ArrayList();
    int added = 0;
    for (Iterator it = CollectionConverters.asJava(super.batches()).iterator(); it.hasNext();) {
      RuleExecutor.Batch batch = (RuleExecutor.Batch) it.next();
      if (BEFORE.equals(batch.name())) {
        batches.add(batch("Early", early));
        added++;
      } else if (REWRITE.equals(batch.name())) {
        batches.add(batch("Metadata of rows", Collections.singletonList(new MetadataOfRows())));
        added++;
      }
      batches.add(batch);
    }
    if (added != 2) {
      throw new IllegalStateException("This version of Spark is not supported: the batches of " + Analyzer.class);
    }
    return CollectionTools.seq(batches);
  }

  private Object batch(String name, List rules) {
    try {
      Object[] arguments = new Object[] {this, name, fixedPoint(), CollectionTools.seq(rules)};
      return RuleExecutor.Batch.class.getConstructors()[0].newInstance(arguments);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + RuleExecutor.Batch.class, e);
    }
  }
}
