package hms_iceberg.bridge.write;

import hms_iceberg.bridge.output.WrittenFiles;
import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes the rows of one task as data files. */
public class RowWriter implements DataWriter {
  public final TaskFiles files;

  public RowWriter(TaskFiles files) {
    this.files = files;
  }

  public void write(Object row) throws IOException {
    files.write((InternalRow) row);
  }

  public WriterCommitMessage commit() throws IOException {
    List written = files.finish();
    TaskFiles.report(written);
    return new WrittenFiles(written);
  }

  public void abort() {
    files.abort();
  }

  public void close() {
    files.close();
  }
}
