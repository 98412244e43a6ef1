package hms_iceberg.bridge.wire;

import java.io.Serializable;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/**
 * A Hadoop configuration on its way to executors. Most of its thousand entries are those of the context, the same for all
 * queries: they are sent once, and with a query only what it adds or changes.
 */
public final class ExecutorConf implements Serializable {
  private static Sent ofContext;

  private final Broadcast sent;
  private final HashMap added;
  private transient Configuration conf;

  private ExecutorConf(Broadcast sent, HashMap added) {
    this.sent = sent;
    this.added = added;
  }

  public static ExecutorConf of(SparkSession session, Configuration conf) {
    Map entries = entries(conf);
    Sent sent = sent(session.sparkContext(), entries);
    HashMap added = new HashMap(entries);
    added.entrySet().removeAll(sent.entries.entrySet());
    return new ExecutorConf(sent.broadcast, added);
  }

  /** The configuration; not to be changed. */
  public synchronized Configuration value() {
    if (conf == null) {
      Configuration made = new Configuration(((SerializableConfiguration) sent.value()).value());
      for (Iterator it = added.entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        made.set((String) entry.getKey(), (String) entry.getValue());
      }
      conf = made;
    }
    return conf;
  }

  /** What was sent last, if nothing of it is missing in the entries. */
  private static synchronized Sent sent(SparkContext context, Map entries) {
    if (ofContext == null || ofContext.context.get() != context
        || !entries.keySet().containsAll(ofContext.entries.keySet())) {
      ofContext = new Sent(context, context.hadoopConfiguration());
    }
    return ofContext;
  }

  private static Map entries(Configuration conf) {
    Map entries = new HashMap();
    for (Iterator it = conf.iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      entries.put(entry.getKey(), entry.getValue());
    }
    return entries;
  }

  private static final class Sent {
    private final WeakReference context;
    private final Map entries;
    private final Broadcast broadcast;

    private Sent(SparkContext context, Configuration conf) {
      this.context = new WeakReference(context);
      this.entries = entries(conf);
      this.broadcast = context.broadcast(
          new SerializableConfiguration(conf), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    }
  }
}
