package hms_iceberg.bridge.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.output.WrittenFiles;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * The write of one query. Spark asks its commit coordinator, so that of several attempts of a task one tells its files and
 * the others delete theirs.
 */
final class TableBatch implements BatchWrite {
  private final TableWrite write;
  /** Whether Python was handed the files: what becomes of them after that is its decision. */
  private boolean handedOver;

  TableBatch(TableWrite write) {
    this.write = write;
  }

  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return write.writers();
  }

  public void commit(WriterCommitMessage[] messages) {
    ObjectNode question = write.commit();
    WrittenFiles.put(messages, question);
    handedOver = true;
    write.committed();
    write.ask(question);
  }

  public void abort(WriterCommitMessage[] messages) {
    if (!handedOver) {
      write.aborted();
      WrittenFiles.delete(messages, write.session().sessionState().newHadoopConf());
    }
  }

  public String toString() {
    return write.toString();
  }
}
