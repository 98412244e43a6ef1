package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.output.WrittenFiles;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.write.TableWrite;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The write of a DELETE, UPDATE or MERGE: what it asks of Spark, and how it is committed or given up. */
abstract class RowsWrite extends CountedBatch implements RequiresDistributionAndOrdering {
  public final TableWrite write;
  final LineageColumns lineage;
  private final RowOperation operation;
  private boolean handedOver;

  RowsWrite(RowOperation operation, LogicalWriteInfo info) {
    this.operation = operation;
    this.write = operation.write(info);
    this.lineage = LineageColumns.of(info);
  }

  /** Puts into the question what the commit changes beside the new files. */
  public abstract void describe(WriterCommitMessage[] messages, ObjectNode question);

  public Distribution requiredDistribution() {
    return write.requiredDistribution();
  }

  public boolean distributionStrictlyRequired() {
    return write.distributionStrictlyRequired();
  }

  public SortOrder[] requiredOrdering() {
    return write.requiredOrdering();
  }

  public long advisoryPartitionSizeInBytes() {
    return write.advisoryPartitionSizeInBytes();
  }

  public void commit(WriterCommitMessage[] messages, ObjectNode counts) {
    ObjectNode question = write.commit();
    question.put("call", "commit-rows");
    question.set("counts", counts);
    question.set("filter", operation.filter());
    WrittenFiles.put(messages, question);
    describe(messages, question);
    handedOver = true;
    write.committed();
    Extension.activePlanner().ask(question);
  }

  public void abort(WriterCommitMessage[] messages) {
    if (!handedOver) {
      write.aborted();
      WrittenFiles.delete(messages, write.session().sessionState().newHadoopConf());
    }
  }

  public String description() {
    return operation.description();
  }
}
