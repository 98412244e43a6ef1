package iceberg;

/**
 * Spark looks for the class DefaultSource of the package that a format's name could be, if no service is
 * registered for the name: with an Iceberg JAR beside us, "iceberg" stays that JAR's.
 */
public final class DefaultSource extends hms_iceberg.bridge.source.IcebergSource {}
