package hms_iceberg.bridge;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import scala.collection.JavaConverters$;
import scala.collection.Seq;
import scala.collection.mutable.Buffer;

/** Scala 2.12 has none for Java. */
final class CollectionConverters {
  private CollectionConverters() {}

  static List asJava(Seq seq) {
    return JavaConverters$.MODULE$.seqAsJavaList(seq);
  }

  static Map asJava(scala.collection.Map map) {
    return JavaConverters$.MODULE$.mapAsJavaMap(map);
  }

  static Buffer asScala(List list) {
    return JavaConverters$.MODULE$.asScalaBuffer(list);
  }

  static scala.collection.Iterator asScala(Iterator iterator) {
    return JavaConverters$.MODULE$.asScalaIterator(iterator);
  }
}
