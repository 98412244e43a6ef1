package hms_iceberg.bridge;

import org.apache.spark.sql.types.DataType;

/** Spark 3.5 has none: no type is one. */
abstract class VariantType extends DataType {}
