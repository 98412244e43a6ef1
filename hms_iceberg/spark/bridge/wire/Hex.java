package hms_iceberg.bridge.wire;

import java.nio.ByteBuffer;
import java.util.UUID;

/** Bytes as text, and as the text of a UUID. */
public final class Hex {
  private static final char[] DIGITS = "0123456789abcdef".toCharArray();

  private Hex() {}

  public static String of(byte[] bytes) {
    char[] text = new char[2 * bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      text[2 * i] = DIGITS[(bytes[i] >> 4) & 15];
      text[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    return new String(text);
  }

  public static byte[] bytes(String text) {
    byte[] bytes = new byte[text.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  /** The sixteen bytes of a UUID's text. */
  public static byte[] ofUuid(String text) {
    UUID uuid = UUID.fromString(text);
    return ByteBuffer.allocate(16).putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits()).array();
  }

  /** The sixteen bytes of a UUID as its 36 ASCII characters. */
  public static byte[] uuid(byte[] bytes) {
    byte[] text = new byte[36];
    int at = 0;
    for (int i = 0; i < 16; i++) {
      if (i == 4 || i == 6 || i == 8 || i == 10) {
        text[at++] = '-';
      }
      text[at++] = (byte) DIGITS[(bytes[i] >> 4) & 15];
      text[at++] = (byte) DIGITS[bytes[i] & 15];
    }
    return text;
  }
}
