package hms_iceberg.bridge.wire;

import java.nio.charset.StandardCharsets;
import java.util.AbstractList;
import java.util.Arrays;
import java.util.RandomAccess;

/** Texts in one block of UTF-8: a million paths take half of what they would as strings. */
public final class Texts extends AbstractList implements RandomAccess {
  private final byte[] block;
  private final int[] ends;

  /** @param offsets of all texts in the bytes, and of the end of the last one */
  Texts(byte[] bytes, int start, long[] offsets) {
    this.block = Arrays.copyOfRange(bytes, start, start + (int) offsets[offsets.length - 1]);
    this.ends = new int[offsets.length - 1];
    for (int i = 0; i < ends.length; i++) {
      ends[i] = (int) offsets[i + 1];
    }
  }

  public Object get(int number) {
    return text(number);
  }

  public String text(int number) {
    int from = number == 0 ? 0 : ends[number - 1];
    return new String(block, from, ends[number] - from, StandardCharsets.UTF_8);
  }

  public int size() {
    return ends.length;
  }

  public boolean equals(Object other) {
    return other instanceof Texts && Arrays.equals(block, ((Texts) other).block)
        && Arrays.equals(ends, ((Texts) other).ends);
  }

  public int hashCode() {
    return Arrays.hashCode(block);
  }
}
