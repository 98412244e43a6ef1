package org.apache.iceberg.spark.source;

/** The name that code written for Iceberg's Java may give for the format; with that JAR beside us, it is that JAR's. */
public final class IcebergSource extends hms_iceberg.bridge.source.IcebergSource {}
