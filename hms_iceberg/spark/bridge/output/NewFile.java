package hms_iceberg.bridge.output;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.OutputFile;

/** The place of a new file, in the form that Parquet's library has for it; all formats write there. */
public final class NewFile {
  /** Hadoop's own, and what Hive puts in its place. */
  private static final List LOCAL = Arrays.asList(
      new String[] {"org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem"});

  private NewFile() {}

  /** On a local disk Hadoop starts a process for each file, to set the rights that it has anyway. */
  public static OutputFile at(Path path, Configuration conf) throws IOException {
    boolean local = LOCAL.contains(path.getFileSystem(conf).getClass().getName());
    if (!local || FsPermission.getUMask(conf).toShort() != FsPermission.DEFAULT_UMASK) {
      return HadoopOutputFile.fromPath(path, conf);
    }
    java.nio.file.Path file = new File(path.toUri().getPath()).toPath();
    Files.createDirectories(file.getParent());
    return new LocalOutputFile(file);
  }
}
