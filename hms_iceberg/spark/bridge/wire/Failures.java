package hms_iceberg.bridge.wire;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Map$;

/** Errors as Spark throws them. */
public final class Failures {
  private Failures() {}

  /** An AnalysisException, which Scala declares unchecked and PySpark turns into its own typed error. */
  public static RuntimeException of(String message, Throwable cause) {
    Option none = Option.empty();
    return unchecked(new AnalysisException(
        message, none, none, Option.apply(cause), none, Map$.MODULE$.empty(), new QueryContext[0]));
  }

  /** Throws what Java would have a method declare; it returns nothing, so that a caller can write `throw`. */
  public static RuntimeException unchecked(Exception exception) {
    Platform.throwException(exception);
    return new RuntimeException(exception);
  }
}
