package hms_iceberg.bridge.wire;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * What a session that knows Iceberg tables has besides its rules: a planner and settings. Spark's newSession and
 * cloneSession hand the rules on, and with them this, so that every session made of an extended one is as that one is.
 */
public final class Extension {
  /** The setting by which a session's catalogs find its extension. */
  private static final String ID = "spark.hms_iceberg.extension";

  private static final Cleaner CLEANER = Cleaner.create();

  /** By their ids, while a session has them. */
  private static final Map KNOWN = new ConcurrentHashMap();

  public final Planner planner;
  private final Map settings = new LinkedHashMap();

  public Extension(Planner planner) {
    this.planner = planner;
    CLEANER.register(this, new Gone(planner.id, planner.python));
  }

  /** Null if these settings are not those of an extended session. */
  public static Extension find(SQLConf conf) {
    WeakReference known = (WeakReference) KNOWN.get(conf.getConfString(ID, ""));
    return known == null ? null : (Extension) known.get();
  }

  public static Extension of(SQLConf conf) {
    Extension extension = find(conf);
    if (extension == null) {
      throw Failures.of("ConfigurationError: this Spark session does not know Iceberg tables: use the one that"
          + " hms_iceberg.spark.extend(spark) returns.", null);
    }
    return extension;
  }

  /** Who plans for the session that runs a query in this thread. */
  public static Planner activePlanner() {
    return of(SQLConf.get()).planner;
  }

  /** Lets sessions that have its settings find it, and takes over the settings of an extension in whose place it comes. */
  public void announce(Extension before) {
    if (before != null) {
      settings.putAll(before.copyOfSettings());
    }
    settings.put(ID, planner.id);
    KNOWN.put(planner.id, new WeakReference(this));
  }

  /** Makes a setting of the sessions that will be given this. */
  public synchronized void set(String key, String value) {
    settings.put(key, value);
  }

  private synchronized Map copyOfSettings() {
    return new LinkedHashMap(settings);
  }

  /** Makes a setting of a session, and of those that will be made of it. */
  public synchronized void set(SparkSession session, String key, String value) {
    settings.put(key, value);
    session.sessionState().conf().setConfString(key, value);
  }

  /** Gives a session the settings. */
  public void give(SparkSession session) {
    for (Iterator it = copyOfSettings().entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      session.sessionState().conf().setConfString((String) entry.getKey(), (String) entry.getValue());
    }
  }

  /** Spark gives the rules to a session that it makes, but newSession does not copy settings. */
  public void adopt(SparkSession session) {
    if (find(session.sessionState().conf()) == null) {
      give(session);
    }
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
}
