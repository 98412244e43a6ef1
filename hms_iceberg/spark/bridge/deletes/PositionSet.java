package hms_iceberg.bridge.deletes;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;

/** Positions of up to 63 bits: one bitmap for each value of the upper half, which nearly always is zero. */
public final class PositionSet {
  private final Map byUpperHalf = new HashMap();
  private int lastUpper = -1;
  private RoaringBitmap last;

  public void add(long position) {
    addNew(position);
  }

  /** Whether it was not there before. */
  public boolean addNew(long position) {
    int upper = (int) (position >>> 32);
    if (last == null || upper != lastUpper) {
      last = (RoaringBitmap) byUpperHalf.get(Integer.valueOf(upper));
      if (last == null) {
        last = new RoaringBitmap();
        byUpperHalf.put(Integer.valueOf(upper), last);
      }
      lastUpper = upper;
    }
    return last.checkedAdd((int) position);
  }

  public void addAll(PositionSet other) {
    for (java.util.Iterator it = other.byUpperHalf.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      RoaringBitmap own = (RoaringBitmap) byUpperHalf.get(entry.getKey());
      RoaringBitmap theirs = (RoaringBitmap) entry.getValue();
      if (own == null) {
        byUpperHalf.put(entry.getKey(), theirs.clone());
      } else {
        own.or(theirs);
      }
    }
    last = null;
  }

  public boolean contains(long position) {
    RoaringBitmap bitmap = (RoaringBitmap) byUpperHalf.get(Integer.valueOf((int) (position >>> 32)));
    return bitmap != null && bitmap.contains((int) position);
  }

  /**
   * Writes the numbers of the rows whose positions are not in this set, and returns how many. Positions ascend; where
   * they follow one another without gaps, as they do unless pages were skipped, only the deleted ones are visited.
   */
  public int live(ColumnVector positions, int[] rows) {
    int count = rows.length;
    long first = positions.getLong(0);
    long last = positions.getLong(count - 1);
    if (last - first != count - 1 || first >>> 32 != last >>> 32) {
      return liveOneByOne(positions, rows);
    }
    RoaringBitmap bitmap = (RoaringBitmap) byUpperHalf.get(Integer.valueOf((int) (first >>> 32)));
    int kept = 0;
    int next = 0;
    if (bitmap != null) {
      long base = first & 0xffffffffL;
      PeekableIntIterator deleted = bitmap.getIntIterator();
      deleted.advanceIfNeeded((int) base);
      while (deleted.hasNext()) {
        long row = (deleted.next() & 0xffffffffL) - base;
        if (row >= count) {
          break;
        }
        while (next < row) {
          rows[kept++] = next++;
        }
        next++;
      }
    }
    while (next < count) {
      rows[kept++] = next++;
    }
    return kept;
  }

  private int liveOneByOne(ColumnVector positions, int[] rows) {
    int kept = 0;
    for (int row = 0; row < rows.length; row++) {
      if (!contains(positions.getLong(row))) {
        rows[kept++] = row;
      }
    }
    return kept;
  }

  public long bytes() {
    long bytes = 64;
    for (java.util.Iterator it = byUpperHalf.values().iterator(); it.hasNext();) {
      bytes += ((RoaringBitmap) it.next()).getLongSizeInBytes();
    }
    return bytes;
  }

  /** The bytes that read() reads, all numbers little endian, upper halves ascending. */
  public byte[] portable() {
    long size = 8;
    List halves = new ArrayList(byUpperHalf.keySet());
    Collections.sort(halves);
    for (int i = 0; i < halves.size(); i++) {
      RoaringBitmap bitmap = (RoaringBitmap) byUpperHalf.get(halves.get(i));
      bitmap.runOptimize();
      size += 4 + bitmap.serializedSizeInBytes();
    }
    ByteBuffer data = ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
    data.putLong(halves.size());
    for (int i = 0; i < halves.size(); i++) {
      data.putInt(((Integer) halves.get(i)).intValue());
      ((RoaringBitmap) byUpperHalf.get(halves.get(i))).serialize(data);
    }
    return data.array();
  }

  /** Reads the portable form: a count, then for each an upper half and its bitmap. */
  public static PositionSet read(ByteBuffer data) throws java.io.IOException {
    PositionSet set = new PositionSet();
    long count = data.getLong();
    for (long i = 0; i < count; i++) {
      Integer upper = Integer.valueOf(data.getInt());
      RoaringBitmap bitmap = new RoaringBitmap();
      bitmap.deserialize(data);
      data.position(data.position() + bitmap.serializedSizeInBytes());
      set.byUpperHalf.put(upper, bitmap);
    }
    return set;
  }
}
