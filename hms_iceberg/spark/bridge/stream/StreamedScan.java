package hms_iceberg.bridge.stream;

import hms_iceberg.bridge.scan.StreamMaker;
import hms_iceberg.bridge.scan.TableScan;
import hms_iceberg.bridge.table.DescribedTable;
import java.util.Collections;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;

/** A table of which Spark has not said what it reads, as it does for streams: their batches say it, in `StreamColumns`. */
final class StreamedScan implements Scan, SupportsReportStatistics {
  private final DescribedTable table;
  private final StructType columns;
  private final StreamMaker streams;

  StreamedScan(DescribedTable table, StructType columns, StreamMaker streams) {
    this.table = table;
    this.columns = columns;
    this.streams = streams;
  }

  public StructType readSchema() {
    return columns;
  }

  public String description() {
    return "iceberg " + table.name();
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return TableScan.mayReturnBatches(table, columns)
        ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  public Statistics estimateStatistics() {
    return table.estimate();
  }

  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return streams.stream(checkpoint, columns, Collections.emptyList());
  }
}
