package hms_iceberg.bridge.wire;

import java.io.Serializable;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import scala.reflect.ClassTag$;

/** A value that many tasks need: it travels with each of them, or once to each executor. */
public final class SentOnce implements Serializable {
  private final Serializable inTask;
  private final Broadcast sent;

  private SentOnce(Serializable inTask, Broadcast sent) {
    this.inTask = inTask;
    this.sent = sent;
  }

  public static SentOnce withTask(Serializable value) {
    return new SentOnce(value, null);
  }

  public static SentOnce toExecutors(Serializable value, SparkContext context) {
    return new SentOnce(null, context.broadcast(value, ClassTag$.MODULE$.apply(value.getClass())));
  }

  public Object value() {
    return sent == null ? inTask : sent.value();
  }
}
