package hms_iceberg.bridge;

import java.lang.reflect.Field;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
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

/**
 * Writes rows of numbers, texts, days and truths straight into the columns of a row group. Spark's writer calls a function
 * per value, and Parquet's consumer of records keeps count of levels and of missing fields, which flat rows do not need.
 */
final class PlainRow {
  private static final int BOOLEAN = 1;
  private static final int INT = 2;
  private static final int LONG = 3;
  private static final int FLOAT = 4;
  private static final int DOUBLE = 5;
  private static final int TEXT = 6;

  private final int[] kinds;
  /** Of the values of each column; nulls have level 0. */
  private final int[] levels;
  private ColumnWriter[] columns;
  private ColumnWriteStore store;

  private PlainRow(int[] kinds, int[] levels) {
    this.kinds = kinds;
    this.levels = levels;
  }

  /** Null if a column is of another type. */
  static PlainRow of(StructType schema, MessageType file) {
    int[] kinds = new int[schema.fields().length];
    int[] levels = new int[kinds.length];
    for (int i = 0; i < kinds.length; i++) {
      kinds[i] = kind(schema.fields()[i].dataType());
      levels[i] = file.getType(i).isRepetition(Type.Repetition.OPTIONAL) ? 1 : 0;
      if (kinds[i] == 0) {
        return null;
      }
    }
    return new PlainRow(kinds, levels);
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

  /** Writes into the columns behind a consumer from now on; false if they cannot be got at. */
  boolean to(RecordConsumer consumer) {
    try {
      columns = (ColumnWriter[]) field(consumer, "columnWriters");
      store = (ColumnWriteStore) field(consumer, "columns");
      return columns.length == kinds.length;
    } catch (ReflectiveOperationException e) {
      return false; // a consumer of another kind, or of another version of Parquet
    }
  }

  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    Field field = owner.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(owner);
  }

  void write(InternalRow row) {
    for (int i = 0; i < kinds.length; i++) {
      if (row.isNullAt(i)) {
        columns[i].writeNull(0, 0);
      } else {
        add(row, i, columns[i], levels[i]);
      }
    }
    store.endRecord();
  }

  private void add(InternalRow row, int i, ColumnWriter column, int level) {
    switch (kinds[i]) {
      case LONG:
        column.write(row.getLong(i), 0, level);
        break;
      case INT:
        column.write(row.getInt(i), 0, level);
        break;
      case DOUBLE:
        column.write(row.getDouble(i), 0, level);
        break;
      case FLOAT:
        column.write(row.getFloat(i), 0, level);
        break;
      case BOOLEAN:
        column.write(row.getBoolean(i), 0, level);
        break;
      default:
        column.write(Binary.fromReusedByteArray(row.getUTF8String(i).getBytes()), 0, level);
    }
  }
}
