package hms_iceberg.bridge.rowlevel;

import hms_iceberg.bridge.write.RowWriter;
import hms_iceberg.bridge.write.RowWriters;
import hms_iceberg.bridge.write.TaskFiles;
import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;

/** Writes the rows of one task: copied and changed ones come with their metadata, inserted ones without. */
final class CopiedRows extends RowWriter {
  private final LineageColumns lineage;

  private CopiedRows(TaskFiles files, LineageColumns lineage) {
    super(files);
    this.lineage = lineage;
  }

  public void write(Object metadata, Object row) throws IOException {
    files.write(lineage.joined((InternalRow) metadata, (InternalRow) row));
  }

  public void write(Object row) throws IOException {
    write(null, row);
  }

  static final class Writers implements DataWriterFactory, Serializable {
    private final RowWriters rows;
    private final LineageColumns lineage;

    Writers(RowWriters rows, LineageColumns lineage) {
      this.rows = rows;
      this.lineage = lineage;
    }

    public DataWriter createWriter(int partitionId, long taskId) {
      return new CopiedRows(rows.files(partitionId, taskId, 0), lineage.copy());
    }
  }
}
