package hms_iceberg.bridge.avro;

import hms_iceberg.bridge.columns.AbsentColumns;
import hms_iceberg.bridge.columns.Vectors;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.files.ReadSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.SeekableInput;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Batches of an Avro file: records are decoded into columns, and what is not wanted of them is skipped. */
public final class AvroBatches extends FileBatches {
  private static final String DECODER = "org.apache.avro.";
  private static final int SYNC_BYTES = 16;

  private final FilePart part;
  private final ColumnsToRead wanted;
  private final Input input;
  private final DataFileReader file;
  private final AvroColumns columns;
  private final int batchSize;
  private final Vectors.Positions positions = new Vectors.Positions();
  private BinaryDecoder block;
  private long left;
  private long position;
  private int rows;

  private AvroBatches(
      FilePart part, ColumnsToRead wanted, Input input, DataFileReader file, AvroColumns columns, long position,
      int batchSize) {
    this.part = part;
    this.wanted = wanted;
    this.input = input;
    this.file = file;
    this.columns = columns;
    this.position = position;
    this.batchSize = batchSize;
  }

  public static FileBatches open(FilePart part, ColumnsToRead wanted, Configuration conf, ReadSettings settings)
      throws IOException {
    Input input = null;
    boolean done = false;
    try {
      input = new Input(part.path.getFileSystem(conf).open(part.path), part.size);
      DataFileReader file = new DataFileReader(input, new GenericDatumReader());
      AvroColumns columns = new AvroColumns(part, file.getSchema(), marks(file), wanted, settings.batchSize);
      long position = wanted.positions && part.start > 0 ? rowsBefore(file, input, part.start) : 0;
      file.sync(part.start);
      FileBatches batches = new AvroBatches(part, wanted, input, file, columns, position, settings.batchSize);
      done = true;
      return batches;
    } catch (Exception e) {
      throw failed(part, DECODER, input == null || input.failure == null ? e : input.failure);
    } finally {
      if (!done && input != null) {
        input.close();
      }
    }
  }

  private static Map marks(DataFileReader file) {
    Map marks = new HashMap();
    List keys = file.getMetaKeys();
    for (int i = 0; i < keys.size(); i++) {
      String key = (String) keys.get(i);
      if (!key.startsWith("avro.")) {
        marks.put(key, file.getMetaString(key));
      }
    }
    return marks;
  }

  /** How many rows the splits before one have: the block belongs to the split in which the mark before it begins. */
  private static long rowsBefore(DataFileReader file, Input input, long start) throws IOException {
    file.sync(0);
    long rows = 0;
    for (long at = file.previousSync(); at < start + SYNC_BYTES && at < input.length();) {
      BlockHeader block = new BlockHeader(input, at);
      rows += block.records;
      at = block.end;
    }
    return rows;
  }

  public boolean next() throws IOException {
    try {
      columns.reset();
      rows = 0;
      while (rows < batchSize && (left > 0 || nextBlock())) {
        int count = (int) Math.min(batchSize - rows, left);
        columns.read(block, count);
        rows += count;
        left -= count;
        if (left == 0 && !block.isEnd()) {
          throw new IllegalStateException("bytes are left over in the block before byte " + file.previousSync());
        }
      }
    } catch (Exception e) {
      throw failed(part, DECODER, input.failure == null ? e : input.failure);
    }
    positions.set(position);
    position += rows;
    return rows > 0;
  }

  private boolean nextBlock() throws IOException {
    while (!file.pastSync(part.start + part.length)) {
      if (file.hasNext()) {
        ByteBuffer bytes = file.nextBlock();
        left = file.getBlockCount();
        block = DecoderFactory.get().binaryDecoder(
            bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining(), block);
        return true;
      }
      // Avro's reader takes a block without records for the end of the file.
      BlockHeader empty = new BlockHeader(input, file.previousSync());
      if (empty.records > 0) {
        throw new IllegalStateException("the block at byte " + file.previousSync() + " cannot be read");
      }
      file.seek(empty.end);
    }
    return false;
  }

  public int rows() {
    return rows;
  }

  public ColumnVector[] columns(StructType stored) {
    return columns.columns(stored);
  }

  public ColumnVector positions() {
    return positions;
  }

  public ColumnVector[] partition() {
    return AbsentColumns.partition(wanted.partitionSchema, wanted.partition);
  }

  public void close() throws IOException {
    file.close();
    columns.close();
  }

  /** How many records a block has, and where it ends. */
  static final class BlockHeader {
    final long records;
    public final long end;

    BlockHeader(Input input, long start) throws IOException {
      input.seek(start);
      BinaryDecoder header = DecoderFactory.get().directBinaryDecoder(input.stream, null);
      records = header.readLong();
      long size = header.readLong();
      end = input.tell() + size + SYNC_BYTES;
    }
  }

  /** A file of known size, which remembers a failure of its storage. */
  static final class Input implements SeekableInput {
    public final FSDataInputStream stream;
    private final long size;
    public IOException failure;

    Input(FSDataInputStream stream, long size) {
      this.stream = stream;
      this.size = size;
    }

    public void seek(long position) throws IOException {
      try {
        stream.seek(position);
      } catch (IOException e) {
        failure = e;
        throw e;
      }
    }

    public long tell() throws IOException {
      return stream.getPos();
    }

    public long length() {
      return size;
    }

    public int read(byte[] bytes, int at, int length) throws IOException {
      try {
        return stream.read(bytes, at, length);
      } catch (IOException e) {
        failure = e;
        throw e;
      }
    }

    public void close() throws IOException {
      stream.close();
    }
  }
}
