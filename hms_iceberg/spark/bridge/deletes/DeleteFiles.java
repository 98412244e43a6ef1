package hms_iceberg.bridge.deletes;

import hms_iceberg.bridge.batches.OpenFile;
import hms_iceberg.bridge.columns.FieldMetadata;
import hms_iceberg.bridge.files.ColumnsToRead;
import hms_iceberg.bridge.files.DeleteBlock;
import hms_iceberg.bridge.files.DeleteFile;
import hms_iceberg.bridge.files.DeleteRun;
import hms_iceberg.bridge.files.EqualityDeletes;
import hms_iceberg.bridge.files.FileBatches;
import hms_iceberg.bridge.files.FileFailures;
import hms_iceberg.bridge.files.FileKey;
import hms_iceberg.bridge.files.FilePart;
import hms_iceberg.bridge.files.FileTask;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.wire.BoundedCache;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads delete files where they are needed: on the executor, once for all its tasks while memory lasts. */
final class DeleteFiles {
  private static final int VECTOR_MAGIC = 1681511377;
  private static final long READ_WHOLE = 2000000; // positions
  private static final StructType POSITIONS = new StructType(new StructField[] {
      field("file_path", StringType$.MODULE$, 2147483546L), field("pos", LongType$.MODULE$, 2147483545L)});
  private static final BoundedCache CACHE = new BoundedCache(Runtime.getRuntime().maxMemory() / 8);

  private static final long MOST_OF_KEYS = Runtime.getRuntime().maxMemory() / 2;

  private DeleteFiles() {}

  private static StructField field(String name, org.apache.spark.sql.types.DataType type, long id) {
    return new StructField(name, type, true, new MetadataBuilder().putLong(FieldMetadata.ID, id).build());
  }

  /** The deleted positions of one data file, from all of its position deletes or its deletion vector. */
  public static PositionSet positions(FileTask task, Configuration conf, ReadSettings settings) throws Exception {
    List found = new ArrayList();
    for (int i = 0; i < task.positionDeletes.length; i++) {
      addPositions(found, task.positionDeletes[i], task.path, conf, settings);
    }
    if (found.size() == 1) {
      return (PositionSet) found.get(0);
    }
    PositionSet all = new PositionSet();
    for (int i = 0; i < found.size(); i++) {
      all.addAll((PositionSet) found.get(i));
    }
    return all;
  }

  /** What a block has of a data file is looked up at once, unless it comes from files that do not apply to it, too. */
  private static void addPositions(
      List found, DeleteRun run, String dataFile, Configuration conf, ReadSettings settings) throws Exception {
    DeleteBlock block = run.block();
    if (block.key != null) {
      Map byDataFile = (Map) CACHE.get(block.key, new LoadBlock(block, conf, settings));
      BlockPositions positions = (BlockPositions) byDataFile.get(dataFile);
      if (positions == null) {
        return;
      }
      if (run.first <= positions.first && positions.last < run.end) {
        found.add(positions.all);
        return;
      }
    }
    for (int i = run.first; i < run.end; i++) {
      found.add(positions(block.files[i], dataFile, conf, settings));
    }
  }

  /**
   * A file of many positions may be about far more data files than this executor reads: of such a file only what is
   * about one data file is read, which skips the row groups and pages of others.
   */
  private static PositionSet positions(DeleteFile file, String dataFile, Configuration conf, ReadSettings settings)
      throws Exception {
    String only = !file.isVector() && file.recordCount > READ_WHOLE ? dataFile : null;
    PositionSet found = (PositionSet) byDataFile(file, only, conf, settings).get(file.isVector() ? "" : dataFile);
    return found == null ? new PositionSet() : found;
  }

  private static Map byDataFile(DeleteFile file, String only, Configuration conf, ReadSettings settings)
      throws Exception {
    return (Map) CACHE.get(
        file.path + "@" + file.contentOffset + (only == null ? "" : "@" + only),
        new LoadPositions(file, only, conf, settings));
  }

  /** The rows of a group's delete files. */
  public static DeletedKeys keys(EqualityDeletes group, Configuration conf, ReadSettings settings) throws Exception {
    return (DeletedKeys) CACHE.get(group.key, new LoadKeys(group, conf, settings));
  }

  static final class LoadPositions implements BoundedCache.Loader {
    private final DeleteFile file;
    private final String only;
    private final Configuration conf;
    private final ReadSettings settings;
    private long bytes;

    /** Only positions in this data file; null for those in all. */
    LoadPositions(DeleteFile file, String only, Configuration conf, ReadSettings settings) {
      this.file = file;
      this.only = only;
      this.conf = conf;
      this.settings = settings;
    }

    public Object load() throws Exception {
      Map loaded = file.isVector()
          ? Collections.singletonMap("", vector(file, conf)) : positionsByFile(file, only, conf, settings);
      for (Iterator it = loaded.values().iterator(); it.hasNext();) {
        bytes += ((PositionSet) it.next()).bytes() + 512;
      }
      return loaded;
    }

    public long bytes() {
      return bytes;
    }
  }

  /** The positions of one data file that the files of a block delete, and which is the first and the last of these. */
  static final class BlockPositions {
    final PositionSet all = new PositionSet();
    final int first;
    int last;

    BlockPositions(int first) {
      this.first = first;
    }
  }

  static final class LoadBlock implements BoundedCache.Loader {
    private final DeleteBlock block;
    private final Configuration conf;
    private final ReadSettings settings;
    private long bytes;

    LoadBlock(DeleteBlock block, Configuration conf, ReadSettings settings) {
      this.block = block;
      this.conf = conf;
      this.settings = settings;
    }

    public Object load() throws Exception {
      Map loaded = new HashMap();
      for (int i = 0; i < block.files.length; i++) {
        for (Iterator it = byDataFile(block.files[i], null, conf, settings).entrySet().iterator(); it.hasNext();) {
          Map.Entry entry = (Map.Entry) it.next();
          BlockPositions positions = (BlockPositions) loaded.get(entry.getKey());
          if (positions == null) {
            positions = new BlockPositions(i);
            loaded.put(entry.getKey(), positions);
          }
          positions.all.addAll((PositionSet) entry.getValue());
          positions.last = i;
        }
      }
      for (Iterator it = loaded.values().iterator(); it.hasNext();) {
        bytes += ((BlockPositions) it.next()).all.bytes() + 512;
      }
      return loaded;
    }

    public long bytes() {
      return bytes;
    }
  }

  static final class LoadKeys implements BoundedCache.Loader {
    private final EqualityDeletes group;
    private final Configuration conf;
    private final ReadSettings settings;
    private long bytes;

    LoadKeys(EqualityDeletes group, Configuration conf, ReadSettings settings) {
      this.group = group;
      this.conf = conf;
      this.settings = settings;
    }

    public Object load() throws Exception {
      DeletedKeys keys = DeletedKeys.of(group.columns, MOST_OF_KEYS);
      for (int i = 0; i < group.files.length; i++) {
        addFile(keys, group.files[i], group.columns, conf, settings);
      }
      bytes = keys.bytes();
      return keys;
    }

    public long bytes() {
      return bytes;
    }
  }

  private static Map positionsByFile(DeleteFile file, String only, Configuration conf, ReadSettings settings)
      throws Exception {
    Map byFile = new HashMap();
    UTF8String onlyPath = only == null ? null : UTF8String.fromString(only);
    Filter[] filters = only == null ? ColumnsToRead.NO_FILTERS : new Filter[] {new EqualTo("file_path", only)};
    FileBatches batches = OpenFile.batches(
        FilePart.of(file), ColumnsToRead.ofDeletes(POSITIONS, filters), new Configuration(conf), settings);
    try {
      ColumnVector[] columns = batches.columns(POSITIONS);
      UTF8String lastPath = null;
      PositionSet positions = null;
      while (batches.next()) {
        for (int row = 0; row < batches.rows(); row++) {
          UTF8String path = columns[0].getUTF8String(row);
          if (onlyPath != null && !onlyPath.equals(path)) {
            continue;
          }
          if (lastPath == null || !lastPath.equals(path)) {
            lastPath = path.copy();
            positions = (PositionSet) byFile.get(path.toString());
            if (positions == null) {
              positions = new PositionSet();
              byFile.put(path.toString(), positions);
            }
          }
          positions.add(columns[1].getLong(row));
        }
      }
    } finally {
      batches.close();
    }
    return byFile;
  }

  private static void addFile(
      DeletedKeys deleted, DeleteFile file, StructType columns, Configuration conf, ReadSettings settings)
      throws Exception {
    FileBatches batches = OpenFile.batches(
        FilePart.of(file), ColumnsToRead.ofDeletes(columns, ColumnsToRead.NO_FILTERS), new Configuration(conf),
        settings);
    try {
      ColumnarBatch keys = new ColumnarBatch(batches.columns(columns));
      while (batches.next()) {
        keys.setNumRows(batches.rows());
        deleted.add(keys, file.sequenceNumber);
      }
    } finally {
      batches.close();
    }
  }

  /** Length (big endian), magic number, bitmaps (little endian), checksum (big endian). */
  private static PositionSet vector(DeleteFile file, Configuration conf) throws IOException {
    byte[] bytes = new byte[(int) file.contentSize];
    Path path = new Path(file.path);
    FSDataInputStream stream;
    try {
      stream = path.getFileSystem(conf).open(path);
    } catch (FileNotFoundException e) {
      throw FileFailures.missing("file of deletion vectors", path);
    }
    try {
      if (file.key != null) {
        bytes = FileKey.of(file.key, path).read(stream, file.contentOffset, bytes.length);
      } else {
        stream.readFully(file.contentOffset, bytes);
      }
    } finally {
      stream.close();
    }
    ByteBuffer data = ByteBuffer.wrap(bytes);
    int length = data.getInt();
    CRC32 checksum = new CRC32();
    boolean sound = length == bytes.length - 8;
    if (sound) {
      checksum.update(bytes, 4, length);
      sound = data.getInt(bytes.length - 4) == (int) checksum.getValue();
    }
    data.order(ByteOrder.LITTLE_ENDIAN);
    if (!sound || data.getInt() != VECTOR_MAGIC) {
      throw new IOException("The deletion vector at byte " + file.contentOffset + " of " + file.path
          + " is damaged: its length, magic number or checksum is wrong.");
    }
    return PositionSet.read(data);
  }
}
