package hms_iceberg.bridge.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.output.WrittenFiles;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** The write of a stream: a commit for each epoch, which Python recognises if it comes again. */
final class TableStream implements StreamingWrite {
  private final TableWrite write;
  private final Set handedOver = new HashSet();

  TableStream(TableWrite write) {
    this.write = write;
  }

  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return write.writers();
  }

  public void commit(long epoch, WriterCommitMessage[] messages) {
    ObjectNode question = write.commit();
    question.put("epoch", epoch);
    WrittenFiles.put(messages, question);
    handedOver.add(Long.valueOf(epoch));
    write.committed();
    write.ask(question);
  }

  public void abort(long epoch, WriterCommitMessage[] messages) {
    if (!handedOver.contains(Long.valueOf(epoch))) {
      write.aborted();
      WrittenFiles.delete(messages, write.session().sessionState().newHadoopConf());
    }
  }

  public String toString() {
    return write.toString();
  }
}
