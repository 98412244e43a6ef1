package hms_iceberg.bridge.scan;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What Spark's user interface shows of a scan. It makes these by their names, so they must be public. */
public final class ScanMetrics {
  public static final CustomMetric[] SUPPORTED = {new Files(), new Bytes(), new Planning()};

  private ScanMetrics() {}

  public static CustomTaskMetric[] of(long files, long bytes, long millis) {
    return new CustomTaskMetric[] {
      new Value("numFiles", files), new Value("filesSize", bytes), new Value("metadataTime", millis)
    };
  }

  public static final class Files extends CustomSumMetric {
    public String name() {
      return "numFiles";
    }

    public String description() {
      return "number of files read";
    }
  }

  public static final class Bytes extends CustomSumMetric {
    public String name() {
      return "filesSize";
    }

    public String description() {
      return "size of files read (bytes)";
    }
  }

  public static final class Planning extends CustomSumMetric {
    public String name() {
      return "metadataTime";
    }

    public String description() {
      return "metadata time (ms)";
    }
  }

  static final class Value implements CustomTaskMetric {
    private final String name;
    private final long value;

    Value(String name, long value) {
      this.name = name;
      this.value = value;
    }

    public String name() {
      return name;
    }

    public long value() {
      return value;
    }
  }
}
