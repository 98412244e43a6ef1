package hms_iceberg.bridge.until_3_5;

import org.apache.spark.sql.types.DataType;

/** A parameter of a procedure. */
public final class ProcedureParameter {
  public final boolean required;
  private final String name;
  private final DataType type;

  public ProcedureParameter(String name, DataType type, boolean required) {
    this.name = name;
    this.type = type;
    this.required = required;
  }

  public String name() {
    return name;
  }

  public DataType dataType() {
    return type;
  }
}
