package Iceberg;

/** The format's name as USING Iceberg has it. */
public final class DefaultSource extends hms_iceberg.bridge.source.IcebergSource {}
