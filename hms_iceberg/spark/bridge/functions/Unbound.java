package hms_iceberg.bridge.functions;

import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Planner;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructType;

/** A function by its name; the types of its arguments say which one it is. */
final class Unbound implements UnboundFunction {
  private final String name;

  Unbound(String name) {
    this.name = name;
  }

  public String name() {
    return name;
  }

  public String description() {
    if ("iceberg_version".equals(name)) {
      return "iceberg_version() - the version of what reads and writes Iceberg tables here";
    }
    return isParameterized()
        ? name + "(number, column) - Iceberg's transform " + name : name + "(column) - Iceberg's transform " + name;
  }

  /** Spark puts the message of an UnsupportedOperationException into its own error. */
  public BoundFunction bind(StructType arguments) {
    int count = "iceberg_version".equals(name) ? 0 : isParameterized() ? 2 : 1;
    if (arguments.length() != count) {
      throw new UnsupportedOperationException("Wrong number of inputs: expected " + usage());
    }
    if (count == 0) {
      return new VersionFunction(Extension.activePlanner().ask(Planner.question("version")).header().get("version").asText());
    }
    DataType value = arguments.fields()[count - 1].dataType();
    if (count == 1) {
      return TimeFunctions.of(name, value);
    }
    DataType number = arguments.fields()[0].dataType();
    if (!(number instanceof ByteType || number instanceof ShortType || number instanceof IntegerType)) {
      throw new UnsupportedOperationException("Expected " + ("bucket".equals(name) ? "number of buckets" : "truncation width")
          + " to be tinyint, smallint or int, got " + number.catalogString() + ": " + usage());
    }
    return "bucket".equals(name) ? (BoundFunction) new BucketFunction(value) : (BoundFunction) new TruncateFunction(value);
  }

  private boolean isParameterized() {
    return "bucket".equals(name) || "truncate".equals(name);
  }

  private String usage() {
    if ("iceberg_version".equals(name)) {
      return "no input, iceberg_version()";
    }
    return "bucket".equals(name) ? "bucket(number of buckets, column)"
        : "truncate".equals(name) ? "truncate(width, column)" : name + "(column)";
  }
}
