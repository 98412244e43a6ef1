package hms_iceberg.bridge.session;

import hms_iceberg.bridge.catalog.InnerCatalog;
import hms_iceberg.bridge.catalog.NamedCatalogs;
import hms_iceberg.bridge.catalog.SessionCatalog;
import hms_iceberg.bridge.plan.CarriedOnce;
import hms_iceberg.bridge.plan.CheckStreams;
import hms_iceberg.bridge.plan.NamedMetadata;
import hms_iceberg.bridge.plan.OneVersion;
import hms_iceberg.bridge.plan.PrepareScans;
import hms_iceberg.bridge.plan.QueriedOnce;
import hms_iceberg.bridge.plan.StreamColumns;
import hms_iceberg.bridge.sql.LikeTables;
import hms_iceberg.bridge.sql.PartitionStatements;
import hms_iceberg.bridge.sql.ShowTables;
import hms_iceberg.bridge.sql.Statements;
import hms_iceberg.bridge.views.ExpandViews;
import hms_iceberg.bridge.views.ViewStatements;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Generation;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** A session of Spark that knows Iceberg tables: its rules, its parser and its catalog. */
final class ExtendedSession {
  private static final String CATALOG = "spark.sql.catalog.spark_catalog";

  private ExtendedSession() {}

  /** A session that has all that the given one has, and this extension in the place of another. */
  public static SparkSession of(SparkSession given, Extension extension) {
    SQLConf conf = given.sessionState().conf();
    Extension before = Extension.find(conf);
    if (before == null) {
      extension.set(InnerCatalog.CLASS, conf.getConfString(CATALOG, InnerCatalog.BUILT_IN));
      extension.set(CATALOG, SessionCatalog.class.getName());
    }
    extension.announce(before);
    SparkSession extended = Generation.session(given, withRules(extension, given.extensions()));
    extension.give(extended);
    NamedCatalogs.adopt(extension, extended);
    return extended;
  }

  /** Some versions of Spark forget the rules that come before the resolution, or never take any. */
  static void completeRules(Extension extension, SparkSession session) {
    EarlyRules.complete(session, early(extension));
  }

  /** What comes before the resolution of names. */
  private static List early(Extension extension) {
    List rules = new ArrayList();
    rules.add(new RuleBuilder(extension, RuleBuilder.JOIN));
    rules.add(new RuleBuilder(extension, RuleBuilder.OPTIONS));
    rules.add(new RuleBuilder(extension, RuleBuilder.VIEW_STATEMENTS));
    rules.add(new RuleBuilder(extension, RuleBuilder.METADATA));
    return rules;
  }

  /** Spark has no copy of these, and those of the given session must not change. */
  private static SparkSessionExtensions withRules(Extension extension, SparkSessionExtensions given) {
    SparkSessionExtensions own = new SparkSessionExtensions();
    Field[] fields = SparkSessionExtensions.class.getDeclaredFields();
    try {
      for (int i = 0; i < fields.length; i++) {
        if (Buffer.class.isAssignableFrom(fields[i].getType())) {
          fields[i].setAccessible(true);
          ((Buffer) fields[i].get(own)).$plus$plus$eq((Buffer) withoutOurs((Buffer) fields[i].get(given)));
        }
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + SparkSessionExtensions.class, e);
    }
    own.injectPlanNormalizationRule(new RuleBuilder(extension, RuleBuilder.ONE_VERSION));
    own.injectPlanNormalizationRule(new RuleBuilder(extension, RuleBuilder.CARRIED_ONCE));
    own.injectPlanNormalizationRule(new RuleBuilder(extension, RuleBuilder.QUERIED_ONCE));
    own.injectPreCBORule(new RuleBuilder(extension, RuleBuilder.PREPARE));
    own.injectPreCBORule(new RuleBuilder(extension, RuleBuilder.STREAM_COLUMNS));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.CHECK_STREAMS));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.VIEWS));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.REFUSE));
    EarlyRules.inject(own, early(extension));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.STATEMENTS));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.LIKE));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.SHOW));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.PARTITIONS));
    own.injectResolutionRule(new RuleBuilder(extension, RuleBuilder.HIVE_ANSWERS));
    own.injectCheckRule(new RuleBuilder(extension, RuleBuilder.REFUSE_IN_TRANSACTION));
    own.injectParser(new StatementParser.Builder(extension));
    return own;
  }

  private static Buffer withoutOurs(Buffer injected) {
    List others = new ArrayList();
    for (Iterator it = CollectionConverters.asJava(injected).iterator(); it.hasNext();) {
      Object each = it.next();
      if (!(each instanceof RuleBuilder) && !(each instanceof StatementParser.Builder)) {
        others.add(each);
      }
    }
    return CollectionConverters.asScala(others);
  }

  /** Makes a rule for each session that Spark makes of an extended one. */
  static final class RuleBuilder extends AbstractFunction1 {
    static final int PREPARE = 0;
    static final int REFUSE = 1;
    static final int OPTIONS = 2;
    static final int JOIN = 3;
    static final int STATEMENTS = 4;
    static final int LIKE = 5;
    static final int VIEWS = 6;
    static final int VIEW_STATEMENTS = 7;
    static final int ONE_VERSION = 8;
    static final int METADATA = 9;
    static final int CARRIED_ONCE = 10;
    static final int QUERIED_ONCE = 11;
    static final int SHOW = 12;
    static final int PARTITIONS = 13;
    static final int HIVE_ANSWERS = 14;
    static final int STREAM_COLUMNS = 15;
    static final int CHECK_STREAMS = 16;
    static final int REFUSE_IN_TRANSACTION = 17;

    private final Extension extension;
    private final int kind;

    RuleBuilder(Extension extension, int kind) {
      this.extension = extension;
      this.kind = kind;
    }

    /** Those that are made before the session has its settings. */
    private Object withoutSettings(SparkSession session) {
      switch (kind) {
        case ONE_VERSION:
          return new OneVersion();
        case CARRIED_ONCE:
          return new CarriedOnce();
        case QUERIED_ONCE:
          return new QueriedOnce(session);
        default:
          return null;
      }
    }

    public Object apply(Object given) {
      SparkSession session = (SparkSession) given;
      Object early = withoutSettings(session);
      if (early != null) {
        return early;
      }
      extension.adopt(session);
      switch (kind) {
        case PREPARE:
          return new PrepareScans(session);
        case REFUSE:
          return new RefuseWrites(session);
        case OPTIONS:
          return new OptionsOfReads(session);
        case VIEWS:
          return new ExpandViews(session);
        case VIEW_STATEMENTS:
          return new ViewStatements(session);
        case METADATA:
          return new NamedMetadata(session);
        case STATEMENTS:
          return new Statements.OnlyForIceberg();
        case LIKE:
          return new LikeTables(session);
        case STREAM_COLUMNS:
          return new StreamColumns();
        case REFUSE_IN_TRANSACTION:
          return new RefuseInTransaction(session, extension.planner.transactions);
        case CHECK_STREAMS:
          return new CheckStreams();
        case HIVE_ANSWERS:
          return new HiveAnswers(session);
        case PARTITIONS:
          return new PartitionStatements();
        case SHOW:
          return new ShowTables.Extended(session);
        default:
          return new InnerCatalog(session);
      }
    }
  }
}
