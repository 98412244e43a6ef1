package hms_iceberg.bridge.wire;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Between Scala's collections and Java's. */
public final class CollectionTools {
  private CollectionTools() {}

  /** An immutable one, as Spark takes it. */
  public static scala.collection.immutable.Map map(Map entries) {
    scala.collection.immutable.Map map = (scala.collection.immutable.Map) Map$.MODULE$.empty();
    for (Iterator it = entries.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      map = (scala.collection.immutable.Map) map.updated(entry.getKey(), entry.getValue());
    }
    return map;
  }

  public static Seq seq(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
