package hms_iceberg.bridge.columns;

import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/** What settings of a session, or of Hadoop, must not change in what a read of an Iceberg table returns. */
public final class FixedSettings {
  /** The calendar in which Iceberg's writers count days; what a file says of itself goes first. */
  public static final String REBASE_MODE = "CORRECTED";

  /** Settings of Spark's Parquet reader that are left as they are without anybody's setting. */
  private static final String[] AS_BY_DEFAULT = {
    "spark.sql.parquet.binaryAsString", "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parquet.inferTimestampNTZ.enabled", "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.parquet.fieldId.read.ignoreMissing", "spark.sql.legacy.parquet.nanosAsLong",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
  };

  private FixedSettings() {}

  /** Puts them into the configuration that goes to the executors. */
  public static void apply(Configuration conf) {
    for (int i = 0; i < AS_BY_DEFAULT.length; i++) {
      ConfigEntry entry = SQLConf$.MODULE$.getConfigEntry(AS_BY_DEFAULT[i]);
      if (entry != null) {
        conf.set(entry.key(), entry.defaultValueString());
      }
    }
    conf.setBoolean(SQLConf.CASE_SENSITIVE().key(), true);
    conf.unset(ParquetInputFormat.FILTER_PREDICATE);
    conf.unset(ParquetInputFormat.UNBOUND_RECORD_FILTER);
  }
}
