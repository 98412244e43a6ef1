package hms_iceberg.bridge;

import org.apache.spark.sql.types.StructType;

/** A procedure before its arguments are known. */
interface UnboundProcedure {
  BoundProcedure bind(StructType arguments);
}
