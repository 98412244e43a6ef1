package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Json;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.MergeSummary;
import org.apache.spark.sql.connector.write.WriteSummary;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A batch that is told at its commit how many rows changed in which way. Spark 4.1 counts those of a MERGE. */
abstract class CountedBatch implements BatchWrite {
  /** Commits what the tasks wrote; the counts have Spark's names for them, as in num-target-rows-copied. */
  public abstract void commit(WriterCommitMessage[] messages, ObjectNode counts);

  public void commit(WriterCommitMessage[] messages) {
    commit(messages, Json.MAPPER.createObjectNode());
  }

  public void commit(WriterCommitMessage[] messages, WriteSummary summary) {
    ObjectNode counts = Json.MAPPER.createObjectNode();
    if (summary instanceof MergeSummary) {
      put((MergeSummary) summary, counts);
    }
    commit(messages, counts);
  }

  private static void put(MergeSummary merged, ObjectNode counts) {
    put(counts, "copied", merged.numTargetRowsCopied());
    put(counts, "deleted", merged.numTargetRowsDeleted());
    put(counts, "updated", merged.numTargetRowsUpdated());
    put(counts, "inserted", merged.numTargetRowsInserted());
    put(counts, "matched-updated", merged.numTargetRowsMatchedUpdated());
    put(counts, "matched-deleted", merged.numTargetRowsMatchedDeleted());
    put(counts, "not-matched-by-source-updated", merged.numTargetRowsNotMatchedBySourceUpdated());
    put(counts, "not-matched-by-source-deleted", merged.numTargetRowsNotMatchedBySourceDeleted());
  }

  /** A negative count is one that Spark does not know. */
  private static void put(ObjectNode counts, String name, long count) {
    if (count >= 0) {
      counts.put("num-target-rows-" + name, count);
    }
  }
}
