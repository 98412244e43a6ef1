package hms_iceberg.bridge.files;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.crypto.FileEncryptionProperties;

/** The key of one encrypted file, as manifests have it: a version, and an Avro record of key, prefix and length. */
public final class FileKey {
  private static final int VERSION = 1;
  private static final int PREFIX_BYTES = 16;
  /** Of a stream of blocks: "AGS1" and the size of a block, which is that of all. */
  private static final int HEADER_BYTES = 8;
  private static final int NONCE_BYTES = 12;
  public static final int BLOCK_BYTES = 1048576;
  private static final int TAG_BYTES = 16;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final byte[] data;
  private final Path path;
  private int at;

  private byte[] key;
  private byte[] prefix;
  private long length;

  private FileKey(byte[] data, Path path) {
    this.data = data;
    this.path = path;
  }

  /** A new one, of so many bytes. */
  public static FileKey random(int size) {
    FileKey made = new FileKey(null, null);
    made.key = new byte[size];
    made.prefix = new byte[PREFIX_BYTES];
    RANDOM.nextBytes(made.key);
    RANDOM.nextBytes(made.prefix);
    return made;
  }

  public static FileKey of(byte[] data, Path path) throws IOException {
    FileKey read = new FileKey(data, path);
    try {
      if (data[read.at++] != VERSION) {
        throw read.damaged();
      }
      read.key = read.bytes();
      read.prefix = read.number() == 0 ? new byte[0] : read.bytes();
      read.length = read.number() == 0 ? 0 : read.number();
    } catch (IndexOutOfBoundsException e) {
      throw read.damaged();
    }
    return read;
  }

  public FileDecryptionProperties decryption() {
    FileDecryptionProperties.Builder builder = FileDecryptionProperties.builder().withFooterKey(key);
    return (prefix.length == 0 ? builder : builder.withAADPrefix(prefix)).build();
  }

  /** A part of what a file holds that is a stream of encrypted blocks; each block is proof of itself and its place. */
  public byte[] read(FSDataInputStream file, long offset, int size) throws IOException {
    byte[] read = new byte[size];
    for (int done = 0; done < size;) {
      long index = (offset + done) / BLOCK_BYTES;
      byte[] block = block(file, index);
      int from = (int) (offset + done - index * BLOCK_BYTES);
      int part = Math.min(block.length - from, size - done);
      if (part <= 0) {
        throw FileFailures.tampered(path, null);
      }
      System.arraycopy(block, from, read, done, part);
      done += part;
    }
    return read;
  }

  private byte[] block(FSDataInputStream file, long index) throws IOException {
    long start = HEADER_BYTES + index * (NONCE_BYTES + BLOCK_BYTES + TAG_BYTES);
    byte[] stored = new byte[(int) Math.max(0, Math.min(NONCE_BYTES + BLOCK_BYTES + TAG_BYTES, length - start))];
    try {
      file.readFully(start, stored);
      Cipher cipher = cipher(Cipher.DECRYPT_MODE, stored, index);
      return cipher.doFinal(stored, NONCE_BYTES, stored.length - NONCE_BYTES);
    } catch (EOFException e) {
      throw FileFailures.tampered(path, e);
    } catch (GeneralSecurityException e) {
      throw FileFailures.tampered(path, e);
    } catch (IllegalArgumentException e) {
      throw FileFailures.tampered(path, e); // too short to be a block
    }
  }

  /** The beginning of a stream of blocks. */
  public static byte[] header() {
    return ByteBuffer.allocate(HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN).put((byte) 'A').put((byte) 'G')
        .put((byte) 'S').put((byte) '1').putInt(BLOCK_BYTES).array();
  }

  /** A block of a stream as it is stored. */
  public byte[] encrypted(int index, byte[] block, int length) throws IOException {
    byte[] nonce = new byte[NONCE_BYTES];
    RANDOM.nextBytes(nonce);
    byte[] stored = Arrays.copyOf(nonce, NONCE_BYTES + length + TAG_BYTES);
    try {
      cipher(Cipher.ENCRYPT_MODE, nonce, index).doFinal(block, 0, length, stored, NONCE_BYTES);
      return stored;
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }

  private Cipher cipher(int mode, byte[] nonce, long index) throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(mode, new SecretKeySpec(key, "AES"), new GCMParameterSpec(8 * TAG_BYTES, nonce, 0, NONCE_BYTES));
    cipher.updateAAD(prefix);
    cipher.updateAAD(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(0, (int) index));
    return cipher;
  }

  /** The prefix is kept by the manifest, so that a file cannot be put in another one's place. */
  public FileEncryptionProperties encryption() {
    return FileEncryptionProperties.builder(key).withAADPrefix(prefix).withoutAADPrefixStorage().build();
  }

  /** What manifests have of it, with the length of the encrypted file. */
  public byte[] encoded(long length) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(VERSION);
    put(out, key);
    put(out, 1); // of null and bytes, the second
    put(out, prefix);
    put(out, 1);
    put(out, length);
    return out.toByteArray();
  }

  private static void put(ByteArrayOutputStream out, byte[] bytes) {
    put(out, bytes.length);
    out.write(bytes, 0, bytes.length);
  }

  /** As `number` reads them. */
  private static void put(ByteArrayOutputStream out, long number) {
    long raw = (number << 1) ^ (number >> 63);
    for (; (raw & ~127L) != 0; raw >>>= 7) {
      out.write((int) (raw & 127 | 128));
    }
    out.write((int) raw);
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
