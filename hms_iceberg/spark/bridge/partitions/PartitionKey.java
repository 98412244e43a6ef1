package hms_iceberg.bridge.partitions;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The spec and the partition that rows are in. NaN equals NaN and -0.0 is not 0.0, as partitions are told apart. Values
 * are in Spark's internal form, bytes in a ByteBuffer.
 */
public final class PartitionKey {
  public final int specId;
  public final Object[] values;

  PartitionKey(int specId, Object[] values) {
    this.specId = specId;
    this.values = values;
  }

  /** The same, which keeps nothing of a row that is about to change. */
  public PartitionKey copy() {
    Object[] copies = new Object[values.length];
    for (int i = 0; i < copies.length; i++) {
      Object value = values[i];
      if (value instanceof UTF8String) {
        value = ((UTF8String) value).copy();
      } else if (value instanceof ByteBuffer) {
        value = ByteBuffer.wrap((byte[]) ((ByteBuffer) value).array().clone());
      }
      copies[i] = value;
    }
    return new PartitionKey(specId, copies);
  }

  /** Whether sorting leaves the rows of both among one another: Spark takes 0.0 and -0.0 for equal. */
  public boolean isAmong(PartitionKey other) {
    boolean same = other.specId == specId && other.values.length == values.length;
    for (int i = 0; same && i < values.length; i++) {
      same = values[i] == null ? other.values[i] == null
          : values[i].equals(other.values[i]) || isZero(values[i]) && isZero(other.values[i]);
    }
    return same;
  }

  private static boolean isZero(Object value) {
    return (value instanceof Double || value instanceof Float) && ((Number) value).doubleValue() == 0.0;
  }

  public boolean equals(Object other) {
    return other instanceof PartitionKey && ((PartitionKey) other).specId == specId
        && Arrays.equals(((PartitionKey) other).values, values);
  }

  public int hashCode() {
    return 31 * specId + Arrays.hashCode(values);
  }
}
