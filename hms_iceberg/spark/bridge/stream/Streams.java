package hms_iceberg.bridge.stream;

import hms_iceberg.bridge.scan.StreamMaker;
import hms_iceberg.bridge.table.DescribedTable;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Streams of what is appended to a table. */
public final class Streams implements StreamMaker {
  private final DescribedTable table;
  private final CaseInsensitiveStringMap options;

  public Streams(DescribedTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }

  public Scan scan() {
    return new StreamedScan(table, table.schema(), this);
  }

  public MicroBatchStream stream(String checkpoint, StructType columns, List conditions) {
    return new AppendedRows((SparkSession) SparkSession.active(), table, checkpoint, options).of(columns, conditions);
  }
}
