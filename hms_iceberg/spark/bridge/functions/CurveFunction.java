package hms_iceberg.bridge.functions;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.TypeUtils$;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.math.Ordering;

/**
 * The place of a row on Hilbert's curve by the ranks that its values have in a sample; Python's class ZOrder says why.
 * Source: John Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
 */
public final class CurveFunction implements ScalarFunction, Serializable {
  private static final int KEY_BITS = 63;
  private static final int MOST_BITS = 16;

  private final DataType[] types;
  private final Object[][] cuts;
  private final int bits;
  private transient Ordering[] orderings;

  /** For columns of a schema, with a sample of their rows. */
  public CurveFunction(StructType schema, List sample) {
    StructField[] fields = schema.fields();
    types = new DataType[fields.length];
    cuts = new Object[fields.length][];
    bits = Math.min(MOST_BITS, KEY_BITS / fields.length);
    for (int i = 0; i < fields.length; i++) {
      types[i] = fields[i].dataType();
    }
    for (int i = 0; i < fields.length; i++) {
      cuts[i] = cutPoints(sample, i);
    }
  }

  /** Values that part the sample into ranges of about the same number of rows. */
  private Object[] cutPoints(List sample, int column) {
    Function1 internal = CatalystTypeConverters$.MODULE$.createToCatalystConverter(types[column]);
    Comparator comparator = ordering(column);
    List values = new ArrayList();
    for (int i = 0; i < sample.size(); i++) {
      Object value = ((Row) sample.get(i)).get(column);
      if (value != null) {
        values.add(internal.apply(value));
      }
    }
    Collections.sort(values, comparator);
    int most = Math.min(values.size(), (1 << bits) - 2);
    List chosen = new ArrayList();
    for (int i = 0; i < most; i++) {
      Object value = values.get((int) ((long) i * (values.size() - 1) / Math.max(1, most - 1)));
      if (chosen.isEmpty() || comparator.compare(chosen.get(chosen.size() - 1), value) != 0) {
        chosen.add(value);
      }
    }
    return chosen.toArray();
  }

  private Ordering ordering(int column) {
    if (orderings == null) {
      Ordering[] made = new Ordering[types.length];
      for (int i = 0; i < made.length; i++) {
        made[i] = TypeUtils$.MODULE$.getInterpretedOrdering(types[i]);
      }
      orderings = made;
    }
    return orderings[column];
  }

  public String name() {
    return "curve";
  }

  public String canonicalName() {
    return "iceberg.curve." + System.identityHashCode(cuts);
  }

  public DataType[] inputTypes() {
    return (DataType[]) types.clone();
  }

  public DataType resultType() {
    return DataTypes.LongType;
  }

  public boolean isResultNullable() {
    return false;
  }

  public Object produceResult(InternalRow row) {
    int[] places = new int[types.length];
    for (int i = 0; i < places.length; i++) {
      // So that the first bit halves every column.
      places[i] = row.isNullAt(i) ? 0 : (int) (((long) rank(i, row.get(i, types[i])) << bits) / (cuts[i].length + 2));
    }
    toHilbert(places);
    long key = 0;
    for (int bit = bits - 1; bit >= 0; bit--) {
      for (int i = 0; i < places.length; i++) {
        key = key << 1 | (places[i] >> bit & 1);
      }
    }
    return Long.valueOf(key);
  }

  /** One more than the number of cut points that are not above a value. */
  private int rank(int column, Object value) {
    Comparator comparator = ordering(column);
    int low = 0;
    int high = cuts[column].length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (comparator.compare(cuts[column][middle], value) <= 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low + 1;
  }

  /** Changes coordinates so that their interleaved bits are the place on the curve. */
  private void toHilbert(int[] places) {
    for (int bit = bits - 1; bit > 0; bit--) {
      int below = (1 << bit) - 1;
      for (int i = 0; i < places.length; i++) {
        if ((places[i] >> bit & 1) == 1) {
          places[0] ^= below;
        } else {
          int swapped = (places[0] ^ places[i]) & below;
          places[0] ^= swapped;
          places[i] ^= swapped;
        }
      }
    }
    for (int i = 1; i < places.length; i++) {
      places[i] ^= places[i - 1];
    }
    int flips = 0;
    for (int bit = bits - 1; bit > 0; bit--) {
      if ((places[places.length - 1] >> bit & 1) == 1) {
        flips ^= (1 << bit) - 1;
      }
    }
    for (int i = 0; i < places.length; i++) {
      places[i] ^= flips;
    }
  }
}
