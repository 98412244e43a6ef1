package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.TreeSet;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes the rows of replaced files, and at the end puts the new files in the place of the old ones. */
final class CopyOnWriteWrite extends RowsWrite {
  private final CopyOnWrite operation;

  private CopyOnWriteWrite(CopyOnWrite operation, LogicalWriteInfo info) {
    super(operation, info);
    this.operation = operation;
  }

  public BatchWrite toBatch() {
    return this;
  }

  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return new CopiedRows.Writers(write.writers(), lineage);
  }

  public void describe(WriterCommitMessage[] messages, ObjectNode question) {
    ArrayNode replaced = question.putArray("replaced");
    for (Iterator it = new TreeSet(operation.filesToRead()).iterator(); it.hasNext();) {
      replaced.add((String) it.next());
    }
  }

  public void commit(WriterCommitMessage[] messages, ObjectNode counts) {
    try {
      super.commit(messages, counts);
    } finally {
      operation.forget();
    }
  }

  public void abort(WriterCommitMessage[] messages) {
    operation.forget();
    super.abort(messages);
  }

  public String toString() {
    return description() + " (copy-on-write)";
  }

  public static final class Builder implements WriteBuilder {
    private final CopyOnWrite operation;
    private final LogicalWriteInfo info;

    public Builder(CopyOnWrite operation, LogicalWriteInfo info) {
      this.operation = operation;
      this.info = info;
    }

    public Write build() {
      return new CopyOnWriteWrite(operation, info);
    }
  }
}
