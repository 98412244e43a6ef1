package hms_iceberg.bridge.batches;

import hms_iceberg.bridge.avro.AvroBatches;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.orc.OrcBatches;
import hms_iceberg.bridge.parquet.ParquetBatches;
import org.apache.hadoop.conf.Configuration;

/** The files of all formats. */
public final class OpenFile {
  private OpenFile() {}

  /**
   * Opens a file by its format.
   *
   * @param conf becomes the file's own, and may be changed
   */
  public static FileBatches batches(FilePart part, ColumnsToRead columns, Configuration conf, ReadSettings settings)
      throws Exception {
    if ("ORC".equals(part.format)) {
      return OrcBatches.open(part, columns, conf, settings);
    }
    if ("AVRO".equals(part.format)) {
      return AvroBatches.open(part, columns, conf, settings);
    }
    return ParquetBatches.open(part, columns, conf, settings);
  }
}
