package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes new rows, and at the end has the deleted positions of all tasks written as the table's format has them. */
final class MergeOnReadWrite extends RowsWrite implements DeltaWrite, DeltaBatchWrite {
  private final MergeOnRead operation;

  private MergeOnReadWrite(MergeOnRead operation, LogicalWriteInfo info) {
    super(operation, info);
    this.operation = operation;
  }

  public DeltaBatchWrite toBatch() {
    return this;
  }

  public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    // A DELETE writes no rows, and Python was not asked how.
    boolean deletes = operation.command() == RowLevelOperation.Command.DELETE;
    return new ChangedRows.Writers(deletes ? null : write.writers(), lineage, operation.refusal);
  }

  public void describe(WriterCommitMessage[] messages, ObjectNode question) {
    ArrayNode deleted = question.putArray("deleted");
    for (int i = 0; i < messages.length; i++) {
      if (messages[i] != null) {
        ((WrittenChanges) messages[i]).putDeleted(deleted);
      }
    }
  }

  public String toString() {
    return description() + " (merge-on-read)";
  }

  public static final class Builder implements DeltaWriteBuilder {
    private final MergeOnRead operation;
    private final LogicalWriteInfo info;

    public Builder(MergeOnRead operation, LogicalWriteInfo info) {
      this.operation = operation;
      this.info = info;
    }

    public DeltaWrite build() {
      return new MergeOnReadWrite(operation, info);
    }
  }
}
