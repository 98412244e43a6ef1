package hms_iceberg.bridge.until_3_5;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import scala.collection.JavaConverters$;
import scala.collection.Seq;
import scala.collection.mutable.Buffer;

/** Scala 2.12 has none for Java. */
public final class CollectionConverters {
  private CollectionConverters() {}

  public static List asJava(Seq seq) {
    return JavaConverters$.MODULE$.seqAsJavaList(seq);
  }

  public static Map asJava(scala.collection.Map map) {
    return JavaConverters$.MODULE$.mapAsJavaMap(map);
  }

  public static Buffer asScala(List list) {
    return JavaConverters$.MODULE$.asScalaBuffer(list);
  }

  public static scala.collection.Iterator asScala(Iterator iterator) {
    return JavaConverters$.MODULE$.asScalaIterator(iterator);
  }
}
