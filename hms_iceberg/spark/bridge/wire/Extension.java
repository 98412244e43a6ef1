package hms_iceberg.bridge;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * What makes a session know Iceberg tables: a planner, rules and settings. Spark's newSession and cloneSession hand the
 * rules on, and with them this, so that every session made of an extended one is as that one is.
 */
final class Extension {
  /** The setting by which a session's catalogs find its extension. */
  private static final String ID = "spark.hms_iceberg.extension";
  private static final String CATALOG = "spark.sql.catalog.spark_catalog";

  private static final Cleaner CLEANER = Cleaner.create();

  /** By their ids, while a session has them. */
  private static final Map KNOWN = new ConcurrentHashMap();

  final Planner planner;
  private final Map settings = new LinkedHashMap();

  Extension(Planner planner) {
    this.planner = planner;
    CLEANER.register(this, new Gone(planner.id, planner.python));
  }

  /** Null if these settings are not those of an extended session. */
  static Extension find(SQLConf conf) {
    WeakReference known = (WeakReference) KNOWN.get(conf.getConfString(ID, ""));
    return known == null ? null : (Extension) known.get();
  }

  static Extension of(SQLConf conf) {
    Extension extension = find(conf);
    if (extension == null) {
      throw Bridge.failure("ConfigurationError: this Spark session does not know Iceberg tables: use the one that"
          + " hms_iceberg.spark.extend(spark) returns.", null);
    }
    return extension;
  }

  /** That of the session that runs a query in this thread. */
  static Extension active() {
    return of(SQLConf.get());
  }

  /** A session that has all that the given one has, and this extension in the place of another. */
  SparkSession extended(SparkSession session) {
    SQLConf conf = session.sessionState().conf();
    Extension before = find(conf);
    if (before != null) {
      settings.putAll(before.copyOfSettings());
    } else {
      settings.put(InnerCatalog.CLASS, conf.getConfString(CATALOG, InnerCatalog.BUILT_IN));
      settings.put(CATALOG, SessionCatalog.class.getName());
    }
    settings.put(ID, planner.id);
    KNOWN.put(planner.id, new WeakReference(this));
    SparkSession extended = Generation.session(session, withRules(session.extensions()));
    give(extended, copyOfSettings());
    NamedCatalogs.adopt(this, extended);
    return extended;
  }

  private synchronized Map copyOfSettings() {
    return new LinkedHashMap(settings);
  }

  /** Makes a setting of a session, and of those that will be made of it. */
  synchronized void set(SparkSession session, String key, String value) {
    settings.put(key, value);
    session.sessionState().conf().setConfString(key, value);
  }

  private static void give(SparkSession session, Map settings) {
    for (Iterator it = settings.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      session.sessionState().conf().setConfString((String) entry.getKey(), (String) entry.getValue());
    }
  }

  /** Spark gives the rules to a session that it makes, but newSession does not copy settings. */
  void adopt(SparkSession session) {
    if (find(session.sessionState().conf()) == null) {
      give(session, copyOfSettings());
    }
  }

  /** Some versions of Spark forget the rules that come before the resolution, or never take any. */
  void completeRules(SparkSession session) {
    Generation.completeRules(session, early());
  }

  /** What comes before the resolution of names. */
  private List early() {
    List rules = new ArrayList();
    rules.add(new RuleBuilder(this, RuleBuilder.JOIN));
    rules.add(new RuleBuilder(this, RuleBuilder.OPTIONS));
    rules.add(new RuleBuilder(this, RuleBuilder.VIEW_STATEMENTS));
    rules.add(new RuleBuilder(this, RuleBuilder.METADATA));
    return rules;
  }

  /** Spark has no copy of these, and those of the given session must not change. */
  private SparkSessionExtensions withRules(SparkSessionExtensions given) {
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
    own.injectPlanNormalizationRule(new RuleBuilder(this, RuleBuilder.ONE_VERSION));
    own.injectPlanNormalizationRule(new RuleBuilder(this, RuleBuilder.CARRIED_ONCE));
    own.injectPlanNormalizationRule(new RuleBuilder(this, RuleBuilder.QUERIED_ONCE));
    own.injectPreCBORule(new RuleBuilder(this, RuleBuilder.PLAN));
    own.injectResolutionRule(new RuleBuilder(this, RuleBuilder.VIEWS));
    own.injectResolutionRule(new RuleBuilder(this, RuleBuilder.REFUSE));
    Generation.injectEarly(own, early());
    own.injectResolutionRule(new RuleBuilder(this, RuleBuilder.STATEMENTS));
    own.injectResolutionRule(new RuleBuilder(this, RuleBuilder.LIKE));
    own.injectResolutionRule(new RuleBuilder(this, RuleBuilder.SHOW));
    own.injectParser(new StatementParser.Builder(this));
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

  /** No session has the extension any more. */
  static final class Gone implements Runnable {
    private final String id;
    private final PythonSocket python;

    Gone(String id, PythonSocket python) {
      this.id = id;
      this.python = python;
    }

    public void run() {
      KNOWN.remove(id);
      python.close();
    }
  }

  static final class RuleBuilder extends AbstractFunction1 {
    static final int PLAN = 0;
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
        case PLAN:
          return new PlanScans(session);
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
        case SHOW:
          return new ShowTables.Extended(session);
        default:
          return new InnerCatalog(session);
      }
    }
  }
}
