package hms_iceberg.bridge;

/** Parquet has none before 1.14: nothing is one. */
interface ParquetConfiguration {}
