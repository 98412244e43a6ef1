package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.until_3_5.Codecs;
import hms_iceberg.bridge.until_3_5.ProcedureParameter;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TimeTravelSpec$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.PythonMapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.Seq;

/** What Spark 4 has otherwise; see the file of this name in the room `wire`. */
public final class Generation {
  private Generation() {}

  public static SparkSession session(SparkSession given, SparkSessionExtensions rules) {
    return new SparkSession(
        given.sparkContext(), Option.apply(given.sharedState()), Option.apply(given.sessionState()), rules,
        given.initialSessionOptions());
  }

  public static LogicalPlan mapInArrow(Expression function, Seq output, LogicalPlan rows) {
    return new PythonMapInArrow(function, output, rows, false);
  }

  public static LogicalPlan sortWithin(Seq orders, LogicalPlan rows) {
    return new Sort(orders, false, rows);
  }

  public static UnresolvedTable table(Seq name, String command) {
    return new UnresolvedTable(name, command, Option.empty());
  }

  public static Option travel(CaseInsensitiveStringMap options, String timestamp, String version, SQLConf conf) {
    String time = options.get(timestamp);
    Option expression = time == null ? Option.empty() : Option.apply(Literal$.MODULE$.apply(time));
    return TimeTravelSpec$.MODULE$.create(expression, Option.apply(options.get(version)), conf);
  }

  /** Spark ignores them, and would read the newest rows. */
  public static boolean travelsByOptions() {
    return false;
  }

  public static boolean isCurrent(LogicalPlan namespace) {
    return namespace instanceof UnresolvedNamespace && ((UnresolvedNamespace) namespace).multipartIdentifier().isEmpty();
  }

  public static String globalTempDatabase(SessionCatalog catalog) {
    return catalog.globalTempViewManager().database();
  }

  public static String condition(SparkThrowable error) {
    return error.getErrorClass();
  }

  /** Spark 3.5 gives no hints: a row operation looks at this itself. */
  public static String preserved(boolean kept) {
    return "{}";
  }

  /** Java before 16 has no sockets but those of a port. */
  static SocketAddress address(JsonNode told) {
    if (told.has("port")) {
      return new InetSocketAddress(InetAddress.getLoopbackAddress(), told.get("port").asInt());
    }
    try {
      return (SocketAddress) Class.forName("java.net.UnixDomainSocketAddress")
          .getMethod("of", new Class[] {String.class}).invoke(null, new Object[] {told.get("socket").asText()});
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Java has no sockets in folders", e);
    }
  }

  /** Java 8 has none that inherit nothing: they let go of it. */
  public static Thread thread(Runnable task, String name) {
    return new Thread(new WithoutSession(task), name);
  }

  /**
   * Rows that Spark 3.5 copies come without their metadata, and would lose their ids, which tables have from format
   * version 3 on: those are changed by merge-on-read.
   */
  public static boolean copies(Map properties) {
    return Integer.parseInt((String) properties.get("format-version")) < 3;
  }

  public static ParquetWriter writer(ParquetWriter.Builder builder, String codec, Configuration conf) throws IOException {
    return Codecs.writer(builder, CompressionCodecName.valueOf(codec), conf);
  }

  /** Parquet's own builder does not hand it on before 1.14. */
  public static LogicalPlan variantParts(LogicalPlan plan) {
    return plan;
  }

  public static byte[][] variant(InternalRow row, int i) {
    throw new UnsupportedOperationException("Spark 3.5 has no variants.");
  }

  public static void bloomFilterBytes(ParquetWriter.Builder builder, int bytes) {
    try {
      Field properties = ParquetWriter.Builder.class.getDeclaredField("encodingPropsBuilder");
      properties.setAccessible(true);
      ((ParquetProperties.Builder) properties.get(builder)).withMaxBloomFilterBytes(bytes);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + ParquetWriter.class, e);
    }
  }

  /** Parquet before 1.15 writes the statistics of every column. */
  public static void statistics(ParquetWriter.Builder builder, String column, boolean enabled) {}

  public static ProcedureParameter parameter(String name, DataType type, String defaultSql) {
    return new ProcedureParameter(name, type, defaultSql == null);
  }

  static final class WithoutSession implements Runnable {
    private final Runnable task;

    WithoutSession(Runnable task) {
      this.task = task;
    }

    public void run() {
      SparkSession.clearActiveSession();
      task.run();
    }
  }
}
