package hms_iceberg.bridge.until_3_5;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;

/** A new file on a local disk, which Parquet has of its own since 1.14. */
public final class LocalOutputFile implements OutputFile {
  private static final int BUFFER = 1 << 16;

  private final Path path;

  public LocalOutputFile(Path path) {
    this.path = path;
  }

  public PositionOutputStream create(long blockSizeHint) throws IOException {
    return open(new OpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE});
  }

  public PositionOutputStream createOrOverwrite(long blockSizeHint) throws IOException {
    return open(new OpenOption[] {
        StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE});
  }

  private PositionOutputStream open(OpenOption[] options) throws IOException {
    return new Counted(new BufferedOutputStream(Files.newOutputStream(path, options), BUFFER));
  }

  public boolean supportsBlockSize() {
    return false;
  }

  public long defaultBlockSize() {
    return -1;
  }

  public String getPath() {
    return path.toString();
  }

  public static final class Counted extends PositionOutputStream {
    private final OutputStream out;
    private long position;

    public Counted(OutputStream out) {
      this.out = out;
    }

    public long getPos() {
      return position;
    }

    public void write(int data) throws IOException {
      out.write(data);
      position++;
    }

    public void write(byte[] data, int offset, int length) throws IOException {
      out.write(data, offset, length);
      position += length;
    }

    public void flush() throws IOException {
      out.flush();
    }

    public void close() throws IOException {
      out.close();
    }
  }
}
