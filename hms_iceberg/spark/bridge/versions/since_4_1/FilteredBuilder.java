package hms_iceberg.bridge.scan;

import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;

/** A builder that gets conditions as they stand in the plan. */
abstract class FilteredBuilder
    implements ScanBuilder, SupportsPushDownCatalystFilters, SupportsPushDownRequiredColumns {}
