package hms_iceberg.bridge.until_3_5;

import java.io.IOException;
import java.util.Map;
import java.util.Objects;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/**
 * The codecs that Parquet keeps: before 1.14 one of a kind for as long as the JVM lives, with the level of compression
 * that the first file asked for. One of another level makes room for a new one.
 */
public final class Codecs extends CodecFactory {
  private static final String[] LEVELS =
      {"zlib.compress.level", "parquet.compression.codec.zstd.level", "compression.brotli.quality"};

  private Codecs(Configuration conf) {
    super(conf, 0);
  }

  /** Builds a writer; no other one of a table gets a codec in the meantime. */
  public static synchronized ParquetWriter writer(
      ParquetWriter.Builder builder, CompressionCodecName codec, Configuration conf) throws IOException {
    Map known = CodecFactory.CODEC_BY_NAME;
    Object kept = known.get(codec.getHadoopCompressionCodecClassName());
    if (kept instanceof Configurable && !sameLevel(((Configurable) kept).getConf(), conf)) {
      known.remove(codec.getHadoopCompressionCodecClassName());
    }
    return builder.build();
  }

  private static boolean sameLevel(Configuration one, Configuration other) {
    for (int i = 0; i < LEVELS.length; i++) {
      if (!Objects.equals(one.get(LEVELS[i]), other.get(LEVELS[i]))) {
        return false;
      }
    }
    return true;
  }
}
