package hms_iceberg.bridge.read;

import com.github.luben.zstd.ZstdInputStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Some rows as an Arrow stream in Zstandard; no bytes if only the number of rows is asked for. */
public final class ArrowPartition implements InputPartition {
  public final byte[] stream;
  public final int rows;

  public ArrowPartition(byte[] stream, int rows) {
    this.stream = stream;
    this.rows = rows;
  }

  public String[] preferredLocations() {
    return new String[0];
  }

  public static final class Readers implements PartitionReaderFactory, Serializable {
    public PartitionReader createReader(InputPartition partition) {
      return new InRows(createColumnarReader(partition));
    }

    public PartitionReader createColumnarReader(InputPartition partition) {
      ArrowPartition arrow = (ArrowPartition) partition;
      return arrow.stream.length == 0
          ? (PartitionReader) new Counted(arrow.rows) : (PartitionReader) new Streamed(arrow.stream);
    }

    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }
  }

  /** Batches row by row. */
  static final class InRows implements PartitionReader {
    private final PartitionReader batches;
    private Iterator rows = Collections.emptyIterator();

    InRows(PartitionReader batches) {
      this.batches = batches;
    }

    public boolean next() throws IOException {
      while (!rows.hasNext()) {
        if (!batches.next()) {
          return false;
        }
        rows = ((ColumnarBatch) batches.get()).rowIterator();
      }
      return true;
    }

    public Object get() {
      return rows.next();
    }

    public void close() throws IOException {
      batches.close();
    }
  }

  /** Rows without columns. */
  public static final class Counted implements PartitionReader {
    private int rows;
    private int taken;

    public Counted(int rows) {
      this.rows = rows;
    }

    public boolean next() {
      taken = rows;
      rows = 0;
      return taken > 0;
    }

    public Object get() {
      return new ColumnarBatch(new ColumnVector[0], taken);
    }

    public void close() {}
  }

  static final class Streamed implements PartitionReader {
    private final BufferAllocator allocator = new RootAllocator();
    private final ArrowStreamReader reader;

    Streamed(byte[] stream) {
      try {
        this.reader = new ArrowStreamReader(new ZstdInputStream(new ByteArrayInputStream(stream)), allocator);
      } catch (IOException e) {
        throw new IllegalStateException("Cannot read the planner's Arrow stream: " + e.getMessage(), e);
      }
    }

    public boolean next() throws IOException {
      return reader.loadNextBatch();
    }

    public Object get() {
      try {
        VectorSchemaRoot root = reader.getVectorSchemaRoot();
        List vectors = root.getFieldVectors();
        ColumnVector[] columns = new ColumnVector[vectors.size()];
        for (int i = 0; i < columns.length; i++) {
          columns[i] = new ArrowColumnVector((ValueVector) vectors.get(i));
        }
        return new ColumnarBatch(columns, root.getRowCount());
      } catch (IOException e) {
        throw new IllegalStateException("Cannot read the planner's Arrow stream: " + e.getMessage(), e);
      }
    }

    public void close() throws IOException {
      reader.close();
      allocator.close();
    }
  }
}
