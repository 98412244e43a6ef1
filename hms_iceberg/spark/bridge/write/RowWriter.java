package hms_iceberg.bridge;

import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes the rows of one task as data files. */
class RowWriter implements DataWriter {
  final TaskFiles files;

  RowWriter(TaskFiles files) {
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
