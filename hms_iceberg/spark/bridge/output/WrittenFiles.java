package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task tells the driver: its files. */
public class WrittenFiles implements WriterCommitMessage {
  private final WrittenFile[] files;

  public WrittenFiles(List files) {
    this.files = (WrittenFile[]) files.toArray(new WrittenFile[0]);
  }

  /** The files of all tasks, for a question to Python. */
  public static void put(WriterCommitMessage[] messages, ObjectNode question) {
    ArrayNode all = question.putArray("files");
    for (int i = 0; i < messages.length; i++) {
      if (messages[i] != null) {
        WrittenFile[] files = ((WrittenFiles) messages[i]).files;
        for (int j = 0; j < files.length; j++) {
          all.add(files[j].json());
        }
      }
    }
  }

  /** Deletes the files of all tasks. */
  public static void delete(WriterCommitMessage[] messages, Configuration conf) {
    for (int i = 0; i < messages.length; i++) {
      if (messages[i] != null) {
        WrittenFile[] files = ((WrittenFiles) messages[i]).files;
        for (int j = 0; j < files.length; j++) {
          WrittenFile.delete(files[j].location, conf);
        }
      }
    }
  }
}
