package hms_iceberg.bridge.wire;

import java.nio.charset.StandardCharsets;
import java.util.AbstractList;
import java.util.Arrays;
import java.util.RandomAccess;

/**
 * Texts in one block of UTF-8: a million paths take half of what they would as strings. What all of them begin with, as
 * paths below one folder do, is there once.
 */
public final class Texts extends AbstractList implements RandomAccess {
  private final byte[] prefix;
  private final byte[] block;
  private final int[] ends;

  /** @param offsets of all texts in the bytes, and of the end of the last one */
  Texts(byte[] bytes, int start, long[] offsets) {
    int count = offsets.length - 1;
    int common = common(bytes, start, offsets);
    this.prefix = Arrays.copyOfRange(bytes, start, start + common);
    this.block = new byte[(int) offsets[count] - count * common];
    this.ends = new int[count];
    int end = 0;
    for (int i = 0; i < count; i++) {
      int own = (int) (offsets[i + 1] - offsets[i]) - common;
      System.arraycopy(bytes, start + (int) offsets[i] + common, block, end, own);
      end += own;
      ends[i] = end;
    }
  }

  /** How many bytes all of the texts begin with. */
  private static int common(byte[] bytes, int start, long[] offsets) {
    if (offsets.length == 1) {
      return 0;
    }
    int common = (int) (offsets[1] - offsets[0]);
    for (int i = 1; i < offsets.length - 1; i++) {
      int from = start + (int) offsets[i];
      int most = Math.min(common, (int) (offsets[i + 1] - offsets[i]));
      int differs = Arrays.mismatch(bytes, start, start + most, bytes, from, from + most);
      common = differs < 0 ? most : differs;
    }
    return common;
  }

  public Object get(int number) {
    return text(number);
  }

  public String text(int number) {
    int from = number == 0 ? 0 : ends[number - 1];
    int own = ends[number] - from;
    byte[] whole = Arrays.copyOf(prefix, prefix.length + own);
    System.arraycopy(block, from, whole, prefix.length, own);
    return new String(whole, StandardCharsets.UTF_8);
  }

  public int size() {
    return ends.length;
  }

  public boolean equals(Object other) {
    return other instanceof Texts && Arrays.equals(prefix, ((Texts) other).prefix)
        && Arrays.equals(block, ((Texts) other).block) && Arrays.equals(ends, ((Texts) other).ends);
  }

  public int hashCode() {
    return Arrays.hashCode(block);
  }
}
