package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Counts NaN, and keeps the bounds without it, of float and double columns outside of lists and maps. */
final class FloatMetrics {
  private final List columns;

  private FloatMetrics(List columns) {
    this.columns = columns;
  }

  /** Null if there are no such columns. */
  static FloatMetrics of(StructType schema) {
    List columns = new ArrayList();
    collect(schema, new int[0], new int[0], columns);
    return columns.isEmpty() ? null : new FloatMetrics(columns);
  }

  private static void collect(StructType struct, int[] path, int[] widths, List columns) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      int[] here = plus(path, i);
      int[] sizes = plus(widths, fields.length);
      if (fields[i].dataType() instanceof StructType) {
        collect((StructType) fields[i].dataType(), here, sizes, columns);
      } else if (fields[i].dataType() instanceof FloatType || fields[i].dataType() instanceof DoubleType) {
        columns.add(new Column(
            fields[i].metadata().getLong(FileColumns.ID), here, sizes, fields[i].dataType() instanceof DoubleType));
      }
    }
  }

  private static int[] plus(int[] numbers, int number) {
    int[] longer = new int[numbers.length + 1];
    System.arraycopy(numbers, 0, longer, 0, numbers.length);
    longer[numbers.length] = number;
    return longer;
  }

  void add(InternalRow row) {
    for (int i = 0; i < columns.size(); i++) {
      ((Column) columns.get(i)).add(row);
    }
  }

  /** By field id, how many NaN there were and what lies between the bounds: {"3": [1, -1.5, 2.0]}. */
  String json() {
    ObjectNode all = JsonNodeFactory.instance.objectNode();
    for (int i = 0; i < columns.size(); i++) {
      Column column = (Column) columns.get(i);
      ArrayNode metrics = all.putArray(String.valueOf(column.id));
      metrics.add(column.nans);
      metrics.add(column.any ? ValueText.of(Double.valueOf(column.low)) : null);
      metrics.add(column.any ? ValueText.of(Double.valueOf(column.high)) : null);
    }
    return all.toString();
  }

  static final class Column {
    final long id;
    private final int[] path;
    private final int[] widths;
    private final boolean wide;
    long nans;
    boolean any;
    double low;
    double high;

    Column(long id, int[] path, int[] widths, boolean wide) {
      this.id = id;
      this.path = path;
      this.widths = widths;
      this.wide = wide;
    }

    void add(InternalRow row) {
      InternalRow struct = row;
      int last = path.length - 1;
      for (int i = 0; i < last; i++) {
        if (struct.isNullAt(path[i])) {
          return;
        }
        struct = struct.getStruct(path[i], widths[i + 1]);
      }
      if (struct.isNullAt(path[last])) {
        return;
      }
      double value = wide ? struct.getDouble(path[last]) : (double) struct.getFloat(path[last]);
      if (value != value) {
        nans++;
      } else if (!any) {
        any = true;
        low = value;
        high = value;
      } else if (value <= low) {
        low = Double.compare(value, low) < 0 ? value : low;
      } else if (value >= high) {
        high = Double.compare(value, high) > 0 ? value : high;
      }
    }
  }
}
