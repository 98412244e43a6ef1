package hms_iceberg.bridge.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** iceberg_version(), which is the same for the whole session. */
public final class VersionFunction implements ScalarFunction {
  private final String version;

  VersionFunction(String version) {
    this.version = version;
  }

  public String name() {
    return "iceberg_version";
  }

  public String canonicalName() {
    return "iceberg.iceberg_version";
  }

  public DataType[] inputTypes() {
    return new DataType[0];
  }

  public DataType resultType() {
    return DataTypes.StringType;
  }

  public boolean isResultNullable() {
    return false;
  }

  public Object produceResult(InternalRow arguments) {
    return UTF8String.fromString(version);
  }
}
