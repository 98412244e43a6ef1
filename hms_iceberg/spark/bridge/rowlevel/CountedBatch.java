package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Json;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A batch that is told at its commit how many rows changed in which way. Spark 4.0 counts none. */
abstract class CountedBatch implements BatchWrite {
  /** Commits what the tasks wrote; the counts have Spark's names for them, as in num-target-rows-copied. */
  public abstract void commit(WriterCommitMessage[] messages, ObjectNode counts);

  public void commit(WriterCommitMessage[] messages) {
    commit(messages, Json.MAPPER.createObjectNode());
  }
}
