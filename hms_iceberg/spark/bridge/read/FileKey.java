package hms_iceberg.bridge;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.FileDecryptionProperties;

/** The key of one encrypted file, as manifests have it: a version, and an Avro record of key, prefix and length. */
final class FileKey {
  private final byte[] data;
  private final Path path;
  private int at;

  private byte[] key;
  private byte[] prefix;

  private FileKey(byte[] data, Path path) {
    this.data = data;
    this.path = path;
  }

  static FileKey of(byte[] data, Path path) throws IOException {
    FileKey read = new FileKey(data, path);
    try {
      if (data[read.at++] != 1) {
        throw read.damaged();
      }
      read.key = read.bytes();
      read.prefix = read.number() == 0 ? null : read.bytes();
    } catch (IndexOutOfBoundsException e) {
      throw read.damaged();
    }
    return read;
  }

  FileDecryptionProperties decryption() {
    FileDecryptionProperties.Builder builder = FileDecryptionProperties.builder().withFooterKey(key);
    return (prefix == null ? builder : builder.withAADPrefix(prefix)).build();
  }

  private byte[] bytes() throws IOException {
    long size = number();
    if (size < 0 || size > data.length - at) {
      throw damaged();
    }
    byte[] read = new byte[(int) size];
    System.arraycopy(data, at, read, 0, read.length);
    at += read.length;
    return read;
  }

  /** Avro's long: seven bits a byte, the lowest first, and the sign in the lowest bit. */
  private long number() {
    long raw = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = data[at++];
      raw |= (next & 127L) << shift;
      if (next >= 0) {
        return (raw >>> 1) ^ -(raw & 1);
      }
    }
  }

  private IOException damaged() {
    return new IOException("TamperedFileError: Cannot read " + path + ": its key metadata is damaged, or of another kind.");
  }
}
