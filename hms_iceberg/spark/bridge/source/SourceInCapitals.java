package ICEBERG;

/** The format's name as USING ICEBERG has it: Spark tells formats that are no service apart by case. */
public final class DefaultSource extends hms_iceberg.bridge.source.IcebergSource {}
