package hms_iceberg.bridge.scan;

import java.util.List;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;

/** Begins streams of a table with the options of one read. */
public interface StreamMaker {
  /** A scan of which nothing is known but that it may begin a stream. */
  Scan scan();

  /**
   * The stream of a query.
   *
   * @param checkpoint the folder of this source in the query's checkpoint
   * @param conditions Catalyst's
   */
  MicroBatchStream stream(String checkpoint, StructType columns, List conditions);
}
