package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes new rows, and at the end has the deleted positions of all tasks written as the table's format has them. */
final class MergeOnReadWrite implements DeltaWrite, RequiresDistributionAndOrdering, DeltaBatchWrite {
  private final MergeOnRead operation;
  private final TableWrite write;
  private final LineageColumns lineage;
  private boolean handedOver;

  private MergeOnReadWrite(MergeOnRead operation, LogicalWriteInfo info) {
    this.operation = operation;
    this.write = operation.write(info);
    this.lineage = LineageColumns.of(info);
  }

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

  public DeltaBatchWrite toBatch() {
    return this;
  }

  public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    // A DELETE writes no rows, and Python was not asked how.
    boolean deletes = operation.command() == RowLevelOperation.Command.DELETE;
    return new ChangedRows.Writers(deletes ? null : write.writers(), lineage);
  }

  public void commit(WriterCommitMessage[] messages) {
    ObjectNode question = write.commit();
    question.put("call", "commit-rows");
    ArrayNode files = question.putArray("files");
    ArrayNode deleted = question.putArray("deleted");
    for (int i = 0; i < messages.length; i++) {
      if (messages[i] != null) {
        ((WrittenChanges) messages[i]).put(files, deleted);
      }
    }
    question.set("filter", operation.filter());
    handedOver = true;
    write.committed();
    Bridge.ask(question);
  }

  public void abort(WriterCommitMessage[] messages) {
    if (handedOver) {
      return;
    }
    write.aborted();
    for (int i = 0; i < messages.length; i++) {
      if (messages[i] != null) {
        ((WrittenChanges) messages[i]).delete(write.session().sessionState().newHadoopConf());
      }
    }
  }

  public String description() {
    return operation.description();
  }

  public String toString() {
    return operation.description() + " (merge-on-read)";
  }

  static final class Builder implements DeltaWriteBuilder {
    private final MergeOnRead operation;
    private final LogicalWriteInfo info;

    Builder(MergeOnRead operation, LogicalWriteInfo info) {
      this.operation = operation;
      this.info = info;
    }

    public DeltaWrite build() {
      return new MergeOnReadWrite(operation, info);
    }
  }
}
