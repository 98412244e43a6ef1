package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * What Python answered: the length of a JSON header (four bytes, little endian), the header, then arrays of
 * numbers and texts in the order in which they are taken. Each array starts at a multiple of eight.
 */
public final class Answer {
  private final JsonNode header;
  private final ByteBuffer data;

  public Answer(byte[] bytes) {
    this.data = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int length = this.data.getInt();
    try {
      this.header = Json.MAPPER.readTree(bytes, 4, length);
    } catch (IOException e) {
      throw new IllegalStateException("The planner's answer is not readable: " + e.getMessage(), e);
    }
    this.data.position(4 + length);
  }

  public JsonNode header() {
    return header;
  }

  public int[] takeInts(int count) {
    align();
    int[] taken = new int[count];
    data.asIntBuffer().get(taken);
    data.position(data.position() + 4 * count);
    return taken;
  }

  public long[] takeLongs(int count) {
    align();
    long[] taken = new long[count];
    data.asLongBuffer().get(taken);
    data.position(data.position() + 8 * count);
    return taken;
  }

  /** Texts come as count + 1 offsets and one block of UTF-8. */
  public Texts takeTexts(int count) {
    long[] offsets = takeLongs(count + 1);
    align();
    Texts taken = new Texts(data.array(), data.position(), offsets);
    data.position(data.position() + (int) offsets[count]);
    return taken;
  }

  /** Byte strings come as texts do. */
  public byte[][] takeBlobs(int count) {
    long[] offsets = takeLongs(count + 1);
    align();
    int start = data.position();
    byte[][] taken = new byte[count][];
    for (int i = 0; i < count; i++) {
      taken[i] = Arrays.copyOfRange(data.array(), start + (int) offsets[i], start + (int) offsets[i + 1]);
    }
    data.position(start + (int) offsets[count]);
    return taken;
  }

  private void align() {
    int past = data.position() % 8;
    if (past != 0) {
      data.position(data.position() + 8 - past);
    }
  }
}
