package hms_iceberg.bridge.until_3_5;

/** Parquet has none before 1.14: nothing is one. */
interface ParquetConfiguration {}
