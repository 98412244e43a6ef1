package hms_iceberg.bridge;

import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.StringType;

/** Writes rows of numbers, texts, days and truths straight away, where Spark's writer calls a function per value. */
final class PlainRow {
  private static final int BOOLEAN = 1;
  private static final int INT = 2;
  private static final int LONG = 3;
  private static final int FLOAT = 4;
  private static final int DOUBLE = 5;
  private static final int TEXT = 6;

  private final String[] names;
  private final int[] kinds;
  private RecordConsumer consumer;

  private PlainRow(String[] names, int[] kinds) {
    this.names = names;
    this.kinds = kinds;
  }

  /** Null where a column is of another type. */
  static PlainRow of(StructType schema) {
    int[] kinds = new int[schema.fields().length];
    for (int i = 0; i < kinds.length; i++) {
      kinds[i] = kind(schema.fields()[i].dataType());
      if (kinds[i] == 0) {
        return null;
      }
    }
    return new PlainRow(schema.fieldNames(), kinds);
  }

  private static int kind(DataType type) {
    if (type instanceof LongType) {
      return LONG;
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return INT;
    }
    if (type instanceof DoubleType) {
      return DOUBLE;
    }
    if (type instanceof FloatType) {
      return FLOAT;
    }
    if (type instanceof BooleanType) {
      return BOOLEAN;
    }
    return type.getClass().equals(StringType.class) || type.equals(org.apache.spark.sql.types.StringType$.MODULE$)
        ? TEXT : 0;
  }

  void to(RecordConsumer consumer) {
    this.consumer = consumer;
  }

  void write(InternalRow row) {
    consumer.startMessage();
    for (int i = 0; i < kinds.length; i++) {
      if (!row.isNullAt(i)) {
        consumer.startField(names[i], i);
        add(row, i);
        consumer.endField(names[i], i);
      }
    }
    consumer.endMessage();
  }

  private void add(InternalRow row, int i) {
    switch (kinds[i]) {
      case LONG:
        consumer.addLong(row.getLong(i));
        break;
      case INT:
        consumer.addInteger(row.getInt(i));
        break;
      case DOUBLE:
        consumer.addDouble(row.getDouble(i));
        break;
      case FLOAT:
        consumer.addFloat(row.getFloat(i));
        break;
      case BOOLEAN:
        consumer.addBoolean(row.getBoolean(i));
        break;
      default:
        consumer.addBinary(Binary.fromReusedByteArray(row.getUTF8String(i).getBytes()));
    }
  }
}
