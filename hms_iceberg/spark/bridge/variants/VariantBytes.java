package hms_iceberg.bridge.variants;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The layout of variants. Source: Apache Parquet, "Variant Binary Encoding". */
final class VariantBytes {
  /** What the two lowest bits of a value's first byte say. */
  static final int PRIMITIVE = 0;
  static final int SHORT_STRING = 1;
  static final int OBJECT = 2;
  public static final int ARRAY = 3;

  // The primitive types, by the numbers that stand above these bits.
  public static final int NULL = 0;
  public static final int TRUE = 1;
  public static final int FALSE = 2;
  static final int INT8 = 3;
  public static final int INT64 = 6;
  public static final int DOUBLE = 7;
  static final int DECIMAL4 = 8;
  static final int DECIMAL16 = 10;
  public static final int DATE = 11;
  static final int TIMESTAMPTZ = 12;
  public static final int TIMESTAMP = 13;
  public static final int FLOAT = 14;
  public static final int BINARY = 15;
  public static final int STRING = 16;

  /** Bytes after the first one, of each primitive type; -1 where a number of four bytes says how many follow it. */
  private static final int[] SIZES = {0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, -1, -1, 8, 8, 8, 16};

  private VariantBytes() {}

  static int basic(byte[] bytes, int at) {
    return bytes[at] & 3;
  }

  public static int kind(byte[] bytes, int at) {
    return (bytes[at] & 0xFF) >> 2;
  }

  static int unsigned(byte[] bytes, int at, int size) {
    int number = 0;
    for (int i = size - 1; i >= 0; i--) {
      number = number << 8 | (bytes[at + i] & 0xFF);
    }
    return number;
  }

  static long signed(byte[] bytes, int at, int size) {
    long number = bytes[at + size - 1];
    for (int i = size - 2; i >= 0; i--) {
      number = number << 8 | (bytes[at + i] & 0xFF);
    }
    return number;
  }

  /** The number of bytes of the integer, decimal or other primitive that begins there, without its first one. */
  public static int size(byte[] bytes, int at) {
    int kind = kind(bytes, at);
    if (kind >= SIZES.length) {
      throw new IllegalArgumentException("InvalidInputError: a variant holds a value of type " + kind
          + ", which is not known.");
    }
    return SIZES[kind] >= 0 ? SIZES[kind] : 4 + unsigned(bytes, at + 1, 4);
  }

  /** Where the value ends that begins there. */
  public static int end(byte[] bytes, int at) {
    int basic = basic(bytes, at);
    if (basic == SHORT_STRING) {
      return at + 1 + kind(bytes, at);
    }
    if (basic == PRIMITIVE) {
      return at + 1 + size(bytes, at);
    }
    Container container = new Container();
    container.read(bytes, at);
    return container.start(container.count);
  }

  static boolean isString(byte[] bytes, int at) {
    return basic(bytes, at) == SHORT_STRING || (basic(bytes, at) == PRIMITIVE && kind(bytes, at) == STRING);
  }

  /** An object of some fields: the numbers of their names, in the order of these, and where their values are. */
  static byte[] object(byte[] bytes, int[] ids, int[] starts, int count) {
    ByteArrayOutputStream values = new ByteArrayOutputStream();
    int[] offsets = new int[count + 1];
    int greatest = 0;
    for (int i = 0; i < count; i++) {
      values.write(bytes, starts[i], end(bytes, starts[i]) - starts[i]);
      offsets[i + 1] = values.size();
      greatest = Math.max(greatest, ids[i]);
    }
    int idSize = bytesOf(greatest);
    int offsetSize = bytesOf(values.size());
    boolean large = count > 255;
    ByteArrayOutputStream made = new ByteArrayOutputStream();
    made.write((large ? 64 : 0) | (idSize - 1) << 4 | (offsetSize - 1) << 2 | OBJECT);
    number(made, count, large ? 4 : 1);
    for (int i = 0; i < count; i++) {
      number(made, ids[i], idSize);
    }
    for (int i = 0; i <= count; i++) {
      number(made, offsets[i], offsetSize);
    }
    made.write(values.toByteArray(), 0, values.size());
    return made.toByteArray();
  }

  private static void number(ByteArrayOutputStream out, int number, int size) {
    for (int i = 0; i < size; i++) {
      out.write(number >>> 8 * i);
    }
  }

  private static int bytesOf(int number) {
    return number >>> 8 == 0 ? 1 : number >>> 16 == 0 ? 2 : number >>> 24 == 0 ? 3 : 4;
  }

  /** The head of an object or an array. */
  static final class Container {
    public int count;
    private byte[] bytes;
    private int idSize;
    private int offsetSize;
    private int ids;
    private int offsets;
    private int values;

    public void read(byte[] bytes, int at) {
      this.bytes = bytes;
      int header = kind(bytes, at);
      boolean object = basic(bytes, at) == OBJECT;
      offsetSize = (header & 3) + 1;
      idSize = object ? (header >> 2 & 3) + 1 : 0;
      int countSize = (header & (object ? 16 : 4)) != 0 ? 4 : 1;
      count = unsigned(bytes, at + 1, countSize);
      ids = at + 1 + countSize;
      offsets = ids + count * idSize;
      values = offsets + (count + 1) * offsetSize;
    }

    public int id(int i) {
      return unsigned(bytes, ids + i * idSize, idSize);
    }

    /** Where a value begins; that of the number of all is the end. */
    public int start(int i) {
      return values + unsigned(bytes, offsets + i * offsetSize, offsetSize);
    }
  }

  /** The names of a variant's metadata. */
  public static final class Names {
    public final String[] names;
    /** By what they were matched with, for each name its place there; kept by those who match. */
    final Map places = new HashMap();

    Names(byte[] metadata) {
      int size = ((metadata[0] & 0xFF) >> 6) + 1;
      names = new String[unsigned(metadata, 1, size)];
      int first = 1 + size * (names.length + 2);
      for (int i = 0; i < names.length; i++) {
        int start = unsigned(metadata, 1 + size * (i + 1), size);
        int end = unsigned(metadata, 1 + size * (i + 2), size);
        names[i] = new String(metadata, first + start, end - start, StandardCharsets.UTF_8);
      }
    }
  }

  /** The names of the metadata that were seen last: those of most rows are the same. */
  static final class KnownNames {
    private static final int MOST = 500;

    private final Map known = new HashMap();
    private byte[] last;
    private Names names;

    public Names of(byte[] metadata) {
      if (last != null && Arrays.equals(last, metadata)) {
        return names;
      }
      Object key = java.nio.ByteBuffer.wrap(metadata);
      names = (Names) known.get(key);
      if (names == null) {
        names = new Names(metadata);
        if (known.size() == MOST) {
          known.clear();
        }
        known.put(key, names);
      }
      last = metadata;
      return names;
    }
  }
}
