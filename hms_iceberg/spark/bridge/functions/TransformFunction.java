package hms_iceberg.bridge.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;

/**
 * A transform of values of one type. Each class has a static method invoke for each Java class of values: Spark finds
 * it by the input types and calls it from generated code; null for a primitive argument does not get there.
 */
public abstract class TransformFunction implements ScalarFunction {
  private final String name;
  private final DataType[] inputs;
  private final DataType result;

  TransformFunction(String name, DataType[] inputs, DataType result) {
    this.name = name;
    this.inputs = inputs;
    this.result = result;
  }

  public String name() {
    return name;
  }

  public String canonicalName() {
    return "iceberg." + name + "(" + value().catalogString() + ")";
  }

  public DataType[] inputTypes() {
    return (DataType[]) inputs.clone();
  }

  public DataType resultType() {
    return result;
  }

  /** The type of the last argument. */
  public DataType value() {
    return inputs[inputs.length - 1];
  }

  /** What Spark calls where it does not generate code; all arguments are there. */
  abstract Object result(InternalRow arguments);

  public Object produceResult(InternalRow arguments) {
    return arguments.anyNull() ? null : result(arguments);
  }

  public boolean equals(Object other) {
    return other instanceof TransformFunction && canonicalName().equals(((TransformFunction) other).canonicalName());
  }

  public int hashCode() {
    return canonicalName().hashCode();
  }

  public static UnsupportedOperationException refusal(String expected, DataType type) {
    return new UnsupportedOperationException("Expected value to be " + expected + ", got " + type.catalogString());
  }
}
