package hms_iceberg.bridge;

import org.apache.spark.sql.types.DataType;

/** A parameter of a procedure. */
final class ProcedureParameter {
  final boolean required;
  private final String name;
  private final DataType type;

  ProcedureParameter(String name, DataType type, boolean required) {
    this.name = name;
    this.type = type;
    this.required = required;
  }

  String name() {
    return name;
  }

  DataType dataType() {
    return type;
  }
}
