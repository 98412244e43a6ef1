package hms_iceberg.bridge.output;

import hms_iceberg.bridge.files.FileKey;
import java.io.IOException;
import org.apache.parquet.io.PositionOutputStream;

/** A file of which every block is encrypted before it goes to storage; its position is that of the content. */
public final class EncryptedStream extends PositionOutputStream {
  private final PositionOutputStream to;
  private final FileKey key;
  private final byte[] block = new byte[FileKey.BLOCK_BYTES];
  private int filled;
  private int blocks;
  private boolean closed;

  public EncryptedStream(PositionOutputStream to, FileKey key) throws IOException {
    this.to = to;
    this.key = key;
    to.write(FileKey.header());
  }

  public long getPos() {
    return (long) blocks * block.length + filled;
  }

  public void write(int data) throws IOException {
    write(new byte[] {(byte) data}, 0, 1);
  }

  public void write(byte[] data, int offset, int length) throws IOException {
    for (int done = 0; done < length;) {
      int part = Math.min(block.length - filled, length - done);
      System.arraycopy(data, offset + done, block, filled, part);
      filled += part;
      done += part;
      if (filled == block.length) {
        store();
      }
    }
  }

  private void store() throws IOException {
    to.write(key.encrypted(blocks, block, filled));
    blocks++;
    filled = 0;
  }

  /** What is held is less than a block. */
  public void flush() {}

  /** Writes the last block; the length of the encrypted file. */
  public long finish() throws IOException {
    if (filled > 0 || blocks == 0) {
      store();
    }
    return to.getPos();
  }

  public void close() throws IOException {
    if (!closed) {
      closed = true;
      to.close();
    }
  }
}
