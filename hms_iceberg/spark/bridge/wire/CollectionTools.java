package hms_iceberg.bridge;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.sources.Filter;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Between Scala's collections and Java's. */
final class CollectionTools {
  private CollectionTools() {}

  static Filter[] filters(Seq filters) {
    List list = new ArrayList(CollectionConverters.asJava(filters));
    return (Filter[]) list.toArray(new Filter[0]);
  }

  static Seq seq(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
