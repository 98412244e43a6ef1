package hms_iceberg.bridge.deletes;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Deleted keys, each with the newest sequence number that deletes it. Filled once, then only read. */
public abstract class DeletedKeys {
  /** Takes in the rows of a batch of one delete file. */
  public abstract void add(ColumnarBatch keys, long sequenceNumber);

  /** Compares the rows of one reader's batches. */
  abstract Probe probe(ColumnarBatch keys);

  /** About how much memory this takes. */
  public abstract long bytes();

  /** @param most how many bytes they may take, also while they are put together */
  public static DeletedKeys of(StructType columns, long most) {
    boolean single = columns.fields().length == 1;
    return single && isNumber(columns.fields()[0].dataType())
        ? (DeletedKeys) new Numbers(columns.fields()[0].dataType(), most) : new OfRows(columns, most);
  }

  private static IllegalStateException tooMany(long keys, long most) {
    return new IllegalStateException("The equality delete files that apply to a data file have more than " + keys
        + " keys, which take more than " + most / 1048576 + " MiB, half of the memory of this executor. Give executors"
        + " more (spark.executor.memory; spark.driver.memory where the driver reads), or fold the deletes into the"
        + " table first (convert_equality_deletes in Python, or call system.rewrite_data_files with the option"
        + " delete-file-threshold).");
  }

  private static boolean isNumber(DataType type) {
    return isInt(type) || type instanceof LongType || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }

  private static boolean isInt(DataType type) {
    return type instanceof IntegerType || type instanceof DateType;
  }

  /** Of the first rows of a list of row numbers, leaves those that a later commit than the file's did not delete. */
  interface Probe {
    int keep(int[] rows, int count, long sequenceNumber);
  }

  /** Keys of any columns, compared as bytes: null equals null, and NaN equals NaN. */
  static final class OfRows extends DeletedKeys {
    private final StructType columns;
    private final long most;
    private final Map newest = new HashMap();
    private long bytes;

    OfRows(StructType columns, long most) {
      this.columns = columns;
      this.most = most;
    }

    public void add(ColumnarBatch keys, long sequenceNumber) {
      UnsafeProjection projection = Keys.projection(columns);
      Long number = Long.valueOf(sequenceNumber);
      for (int row = 0; row < keys.numRows(); row++) {
        UnsafeRow key = projection.apply(keys.getRow(row));
        Long known = (Long) newest.get(key);
        if (known == null) {
          UnsafeRow own = key.copy();
          bytes += own.getSizeInBytes() + 120;
          newest.put(own, number);
          if (bytes > most) {
            throw tooMany(newest.size(), most);
          }
        } else if (known.longValue() < sequenceNumber) {
          newest.put(key.copy(), number);
        }
      }
    }

    public long bytes() {
      return bytes;
    }

    Probe probe(ColumnarBatch keys) {
      return new RowProbe(newest, Keys.projection(columns), keys);
    }
  }

  static final class RowProbe implements Probe {
    private final Map newest;
    private final UnsafeProjection projection;
    private final ColumnarBatch keys;

    RowProbe(Map newest, UnsafeProjection projection, ColumnarBatch keys) {
      this.newest = newest;
      this.projection = projection;
      this.keys = keys;
    }

    public int keep(int[] rows, int count, long sequenceNumber) {
      int kept = 0;
      for (int i = 0; i < count; i++) {
        Long deleted = (Long) newest.get(projection.apply(keys.getRow(rows[i])));
        if (deleted == null || deleted.longValue() <= sequenceNumber) {
          rows[kept++] = rows[i];
        }
      }
      return kept;
    }
  }

  /** One whole number: an open hash table of longs. */
  static final class Numbers extends DeletedKeys {
    private final boolean ints;
    private final long most;
    private long[] keys = new long[1024];
    private long[] newest = new long[1024];
    private int size;
    /** What deletes rows without a key; the sequence number 0 deletes nothing. */
    private long newestOfNull;

    Numbers(DataType type, long most) {
      this.ints = isInt(type);
      this.most = most;
    }

    public void add(ColumnarBatch batch, long sequenceNumber) {
      ColumnVector column = batch.column(0);
      for (int row = 0; row < batch.numRows(); row++) {
        if (column.isNullAt(row)) {
          newestOfNull = Math.max(newestOfNull, sequenceNumber);
        } else {
          put(ints ? column.getInt(row) : column.getLong(row), sequenceNumber);
        }
      }
    }

    private void put(long key, long sequenceNumber) {
      if (2 * size >= keys.length) {
        grow();
      }
      int at = slot(key);
      if (newest[at] == 0) {
        keys[at] = key;
        size++;
      }
      newest[at] = Math.max(newest[at], sequenceNumber);
    }

    private int slot(long key) {
      int mask = keys.length - 1;
      long mixed = key * -7046029254386353131L;
      int at = (int) (mixed ^ (mixed >>> 32)) & mask;
      while (newest[at] != 0 && keys[at] != key) {
        at = (at + 1) & mask;
      }
      return at;
    }

    private void grow() {
      if (3 * bytes() > most) {
        throw tooMany(size, most);
      }
      long[] oldKeys = keys;
      long[] oldNewest = newest;
      keys = new long[2 * oldKeys.length];
      newest = new long[2 * oldKeys.length];
      for (int i = 0; i < oldKeys.length; i++) {
        if (oldNewest[i] != 0) {
          int at = slot(oldKeys[i]);
          keys[at] = oldKeys[i];
          newest[at] = oldNewest[i];
        }
      }
    }

    public long bytes() {
      return 16L * keys.length;
    }

    Probe probe(ColumnarBatch batch) {
      return new NumberProbe(this, batch.column(0));
    }

    public int keep(ColumnVector column, int[] rows, int count, long sequenceNumber) {
      int kept = 0;
      for (int i = 0; i < count; i++) {
        int row = rows[i];
        long deleted = column.isNullAt(row)
            ? newestOfNull : newest[slot(ints ? column.getInt(row) : column.getLong(row))];
        if (deleted <= sequenceNumber) {
          rows[kept++] = row;
        }
      }
      return kept;
    }
  }

  static final class NumberProbe implements Probe {
    private final Numbers numbers;
    private final ColumnVector column;

    NumberProbe(Numbers numbers, ColumnVector column) {
      this.numbers = numbers;
      this.column = column;
    }

    public int keep(int[] rows, int count, long sequenceNumber) {
      return numbers.keep(column, rows, count, sequenceNumber);
    }
  }
}
