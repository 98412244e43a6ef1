package hms_iceberg.bridge.output;

import hms_iceberg.bridge.wire.Hex;

/** Values on their way to files: what does not fit its column is refused. */
public final class StoredValues {
  private StoredValues() {}

  /** The bytes of a UUID's text. */
  public static byte[] uuid(String text, String column) {
    try {
      return Hex.ofUuid(text);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("InvalidInputError: '" + text + "' does not fit the column " + column
          + " of type uuid.", e);
    }
  }

  /** Refuses a value that has not the length of its type. */
  public static void checkLength(int found, int length, String column) {
    if (found != length) {
      throw new IllegalArgumentException("InvalidInputError: a value of " + found + " bytes does not fit the column "
          + column + " of type fixed[" + length + "].");
    }
  }

  /** The error for a null where the table allows none. */
  public static RuntimeException missing(String column) {
    return new IllegalArgumentException(
        "InvalidInputError: the column " + column + " is required, and a value of it is null.");
  }
}
