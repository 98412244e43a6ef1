package hms_iceberg.bridge.until_3_5;

import org.apache.spark.sql.types.DataType;

/** Spark 3.5 has none: no type is one. */
public abstract class VariantType extends DataType {}
