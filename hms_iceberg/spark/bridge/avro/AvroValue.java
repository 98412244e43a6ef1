package hms_iceberg.bridge.avro;

import java.io.IOException;
import org.apache.avro.io.BinaryDecoder;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;

/** Decodes one value, and appends it to a column. */
abstract class AvroValue {
  public abstract void read(BinaryDecoder in, WritableColumnVector to) throws IOException;
}
