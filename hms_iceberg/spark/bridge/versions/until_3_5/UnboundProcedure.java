package hms_iceberg.bridge.until_3_5;

import org.apache.spark.sql.types.StructType;

/** A procedure before its arguments are known. */
public interface UnboundProcedure {
  BoundProcedure bind(StructType arguments);
}
