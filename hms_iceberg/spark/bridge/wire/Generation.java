package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.CurrentNamespace$;
import org.apache.spark.sql.catalyst.analysis.TimeTravelSpec$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.execution.datasources.PushVariantIntoScan$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.VariantVal;
import scala.Option;
import scala.collection.IterableOnce;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** What Spark 3.5 has otherwise than Spark 4; it has a file of its own, in the room `until_3_5`. */
public final class Generation {
  private Generation() {}

  /** A session that shares all with another one, but has other rules. */
  public static SparkSession session(SparkSession given, SparkSessionExtensions rules) {
    return new SparkSession(
        given.sparkContext(), Option.apply(given.sharedState()), Option.apply(given.sessionState()), rules,
        given.initialSessionOptions(),
        (scala.collection.immutable.Map) Map$.MODULE$.from((IterableOnce) given.managedJobTags().get()));
  }

  public static LogicalPlan mapInArrow(Expression function, Seq output, LogicalPlan rows) {
    return new MapInArrow(function, output, rows, false, Option.empty());
  }

  public static LogicalPlan sortWithin(Seq orders, LogicalPlan rows) {
    return new Sort(orders, false, rows, Option.empty());
  }

  public static UnresolvedTable table(Seq name, String command) {
    return new UnresolvedTable(name, command, false);
  }

  /** The version that a read's options ask for. */
  public static Option travel(CaseInsensitiveStringMap options, String timestamp, String version, SQLConf conf) {
    return TimeTravelSpec$.MODULE$.fromOptions(options, timestamp, version, conf.sessionLocalTimeZone());
  }

  /** Whether Spark itself sees to a version or time among the options of a read of a table by its name. */
  public static boolean travelsByOptions() {
    return true;
  }

  /** Whether a statement's namespace is the one that is current. */
  public static boolean isCurrent(LogicalPlan namespace) {
    return namespace == CurrentNamespace$.MODULE$;
  }

  public static String globalTempDatabase(SessionCatalog catalog) {
    return catalog.globalTempDatabase();
  }

  public static String condition(SparkThrowable error) {
    return error.getCondition();
  }

  /** What becomes of a metadata column when a row is updated, and written anew; a deleted row keeps it. */
  public static String preserved(boolean kept) {
    return "{\"" + MetadataColumn.PRESERVE_ON_UPDATE + "\":" + kept + ",\"" + MetadataColumn.PRESERVE_ON_REINSERT
        + "\":" + kept + ",\"" + MetadataColumn.PRESERVE_ON_DELETE + "\":true}";
  }

  /** Where Python listens, as it tells. */
  static SocketAddress address(JsonNode told) {
    return UnixDomainSocketAddress.of(told.get("socket").asText());
  }

  /** One that inherits no session, and keeps none. */
  public static Thread thread(Runnable task, String name) {
    return new Thread(null, task, name, 0, false);
  }

  /** Whether rows of a table with these properties can be copied with their lineage. */
  public static boolean copies(Map properties) {
    return true;
  }

  /** Builds a writer whose codec has the level of compression that its configuration says. */
  public static ParquetWriter writer(ParquetWriter.Builder builder, String codec, Configuration conf) throws IOException {
    return builder.build();
  }

  public static void bloomFilterBytes(ParquetWriter.Builder builder, int bytes) {
    builder.withMaxBloomFilterBytes(bytes);
  }

  public static void statistics(ParquetWriter.Builder builder, String column, boolean enabled) {
    builder.withStatisticsEnabled(column, enabled);
  }

  /** The plan of a scan of Parquet files that reads parts of variants where they are enough. */
  public static LogicalPlan variantParts(LogicalPlan plan) {
    return PushVariantIntoScan$.MODULE$.apply(plan);
  }

  /** The value and the metadata of a variant. */
  public static byte[][] variant(InternalRow row, int i) {
    VariantVal variant = row.getVariant(i);
    return new byte[][] {variant.getValue(), variant.getMetadata()};
  }

  /** A parameter of a procedure, with the SQL of its default or null; Janino calls no static method of an interface. */
  public static ProcedureParameter parameter(String name, DataType type, String defaultSql) {
    try {
      Object builder = ProcedureParameter.class.getMethod("in", new Class[] {String.class, DataType.class})
          .invoke(null, new Object[] {name, type});
      ProcedureParameter.Builder parameter = (ProcedureParameter.Builder) builder;
      return defaultSql == null ? parameter.build() : parameter.defaultValue(defaultSql).build();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + ProcedureParameter.class, e);
    }
  }
}
