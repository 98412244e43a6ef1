package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hms_iceberg.bridge.columns.FieldIds;
import hms_iceberg.bridge.variants.ShreddedType;
import hms_iceberg.bridge.variants.VariantColumn;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.Shapes;
import java.lang.reflect.Field;
import java.util.Arrays;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.RecordConsumerLoggingWrapper;
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
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VariantType;

/**
 * Writes rows of numbers, texts, days, times, truths and variants straight into the columns of a row group. Spark's writer
 * calls a function per value, and Parquet's consumer of records keeps count of levels and of missing fields, which flat
 * rows do not need. Beside variants there may be columns of other types, which are left to Spark's.
 */
public final class PlainRow {
  private static final boolean POSSIBLE = Shapes.absent(
      "org.apache.parquet.io.MessageColumnIO$MessageColumnIORecordConsumer", "columnWriters columns") == null;

  private static final int BOOLEAN = 1;
  private static final int INT = 2;
  private static final int LONG = 3;
  private static final int FLOAT = 4;
  private static final int DOUBLE = 5;
  private static final int TEXT = 6;
  private static final int VARIANT = 7;

  private final int[] kinds;
  /** Of the values of each column; nulls have level 0. */
  private final int[] levels;
  private final VariantColumn[] variants;
  /** Where the leaves of each column begin. */
  private final int[] leaves;
  private final MessageType file;
  private ColumnWriter[] columns;
  private ColumnWriteStore store;

  private PlainRow(int[] kinds, MessageType file, ShreddedType[] shredded) {
    this.kinds = kinds;
    this.file = file;
    this.levels = new int[kinds.length];
    this.variants = new VariantColumn[kinds.length];
    this.leaves = new int[kinds.length];
    int leaf = 0;
    for (int i = 0; i < kinds.length; i++) {
      Type type = file.getType(i);
      levels[i] = type.isRepetition(Type.Repetition.OPTIONAL) ? 1 : 0;
      if (kinds[i] == VARIANT) {
        variants[i] = new VariantColumn(type.asGroupType(), shredded == null ? null : shredded[i]);
      }
      leaves[i] = leaf;
      leaf += leaves(type);
    }
  }

  /** Null if it has nothing to write, or could write all but for a column of another type. */
  public static PlainRow of(StructType schema, MessageType file, ShreddedType[] shredded) {
    int[] kinds = new int[schema.fields().length];
    for (int i = 0; i < kinds.length; i++) {
      boolean fixed = new FieldIds(schema.fields()[i].metadata()).hasFixed();
      kinds[i] = fixed ? 0 : kind(schema.fields()[i].dataType());
    }
    PlainRow row = new PlainRow(kinds, file, shredded);
    return row.others().length == 0 || row.hasVariants() ? row : null;
  }

  private static int leaves(Type type) {
    int leaves = type.isPrimitive() ? 1 : 0;
    for (int i = 0; !type.isPrimitive() && i < type.asGroupType().getFieldCount(); i++) {
      leaves += leaves(type.asGroupType().getType(i));
    }
    return leaves;
  }

  boolean hasVariants() {
    for (int i = 0; i < kinds.length; i++) {
      if (kinds[i] == VARIANT) {
        return true;
      }
    }
    return false;
  }

  /** Which columns are left to Spark's writer. */
  public int[] others() {
    int[] others = new int[kinds.length];
    int count = 0;
    for (int i = 0; i < kinds.length; i++) {
      if (kinds[i] == 0) {
        others[count++] = i;
      }
    }
    return Arrays.copyOf(others, count);
  }

  private static int kind(DataType type) {
    if (type instanceof VariantType) {
      return VARIANT;
    }
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
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

  /** Whether the columns behind Parquet's consumer can be got at. */
  public static boolean isPossible() {
    return POSSIBLE;
  }

  /** Writes into the columns behind a consumer from now on; false if they cannot be got at. */
  public boolean to(RecordConsumer consumer) {
    try {
      RecordConsumer own = consumer instanceof RecordConsumerLoggingWrapper
          ? (RecordConsumer) field(consumer, "delegate") : consumer;
      columns = (ColumnWriter[]) field(own, "columnWriters");
      store = (ColumnWriteStore) field(own, "columns");
    } catch (ReflectiveOperationException e) {
      return false; // a consumer of another kind, or of another version of Parquet
    }
    for (int i = 0; i < kinds.length; i++) {
      if (kinds[i] == VARIANT) {
        variants[i].to(columns, leaves[i]);
      }
    }
    return true;
  }

  /** A consumer of the columns that are left to Spark's writer. */
  public RecordConsumer consumerOfOthers() {
    int[] others = others();
    Type[] types = new Type[others.length];
    for (int i = 0; i < others.length; i++) {
      types[i] = file.getType(others[i]);
    }
    MessageType message = new MessageType(file.getName(), types);
    return new ColumnIOFactory().getColumnIO(message).getRecordWriter(new SharedColumns(store));
  }

  /** Adds the places of the leaves of variants, among those of the file, of which some value is NaN. */
  public void addNanLeaves(ArrayNode places) {
    for (int i = 0; i < variants.length; i++) {
      if (variants[i] != null) {
        variants[i].addNanLeaves(places);
      }
    }
  }

  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    Field field = owner.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(owner);
  }

  public void write(InternalRow row) {
    for (int i = 0; i < kinds.length; i++) {
      if (kinds[i] == VARIANT) {
        variant(row, i);
      } else if (kinds[i] != 0 && row.isNullAt(i)) {
        columns[leaves[i]].writeNull(0, 0);
      } else if (kinds[i] != 0) {
        add(row, i, columns[leaves[i]], levels[i]);
      }
    }
    store.endRecord();
  }

  private void variant(InternalRow row, int i) {
    if (row.isNullAt(i)) {
      variants[i].writeNull();
    } else {
      byte[][] variant = Generation.variant(row, i);
      variants[i].write(variant[0], variant[1]);
    }
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

  /** The columns of a row group for a writer that writes only some of them, and does not end the row. */
  static final class SharedColumns implements ColumnWriteStore {
    private final ColumnWriteStore store;

    SharedColumns(ColumnWriteStore store) {
      this.store = store;
    }

    public ColumnWriter getColumnWriter(ColumnDescriptor path) {
      return store.getColumnWriter(path);
    }

    public void endRecord() {}

    public void flush() {}

    public long getAllocatedSize() {
      return store.getAllocatedSize();
    }

    public long getBufferedSize() {
      return store.getBufferedSize();
    }

    public String memUsageString() {
      return store.memUsageString();
    }

    public boolean isColumnFlushNeeded() {
      return store.isColumnFlushNeeded();
    }

    public void close() {}
  }
}
