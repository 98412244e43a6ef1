package hms_iceberg.bridge.sql;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** CALL, which Spark 4 has in its own grammar; Spark 3.5 has a file of this name of its own. */
public final class CallStatement {
  private CallStatement() {}

  /** Null: the text is none of ours. */
  public static LogicalPlan read(SparkSession session, ParserInterface parser, String text) {
    return null;
  }
}
