package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes the rows of replaced files, and at the end puts the new files in the place of the old ones. */
final class CopyOnWriteWrite implements RequiresDistributionAndOrdering, BatchWrite {
  private final CopyOnWrite operation;
  private final TableWrite write;
  private final LineageColumns lineage;
  private boolean handedOver;

  private CopyOnWriteWrite(CopyOnWrite operation, LogicalWriteInfo info) {
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

  public BatchWrite toBatch() {
    return this;
  }

  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return new CopiedRows.Writers(write.writers(), lineage);
  }

  public void commit(WriterCommitMessage[] messages) {
    ObjectNode question = write.commit();
    question.put("call", "commit-rows");
    WrittenFiles.put(messages, question);
    question.set("filter", operation.filter());
    ArrayNode replaced = question.putArray("replaced");
    for (Iterator it = operation.replaced.paths().iterator(); it.hasNext();) {
      replaced.add((String) it.next());
    }
    handedOver = true;
    write.committed();
    Bridge.ask(question);
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

  public String toString() {
    return operation.description() + " (copy-on-write)";
  }

  static final class Builder implements WriteBuilder {
    private final CopyOnWrite operation;
    private final LogicalWriteInfo info;

    Builder(CopyOnWrite operation, LogicalWriteInfo info) {
      this.operation = operation;
      this.info = info;
    }

    public Write build() {
      return new CopyOnWriteWrite(operation, info);
    }
  }
}
