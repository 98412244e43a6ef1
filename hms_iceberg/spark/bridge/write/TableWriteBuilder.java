package hms_iceberg.bridge.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.conditions.PredicateText;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Json;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/** Appends to a table, or overwrites it: all, what a condition says, or the partitions of the new rows. */
public final class TableWriteBuilder implements WriteBuilder, SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final DescribedTable table;
  private final LogicalWriteInfo info;
  private String kind = "append";
  private Predicate[] filter;

  public TableWriteBuilder(DescribedTable table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }

  public boolean canOverwrite(Predicate[] predicates) {
    return true;
  }

  public WriteBuilder truncate() {
    return overwrite(new Predicate[] {new AlwaysTrue()});
  }

  public WriteBuilder overwrite(Predicate[] predicates) {
    boolean all = predicates.length == 0 || predicates.length == 1 && predicates[0] instanceof AlwaysTrue;
    if (all && "dynamic".equalsIgnoreCase(info.options().get("overwrite-mode"))) {
      return overwriteDynamicPartitions();
    }
    kind = "overwrite";
    filter = predicates;
    return this;
  }

  public WriteBuilder overwriteDynamicPartitions() {
    kind = "replace-partitions";
    filter = null;
    return this;
  }

  public Write build() {
    ObjectNode question = question(table, info);
    question.put("kind", kind);
    if (filter != null) {
      question.set("filter", PredicateText.of(filter));
    }
    return new TableWrite((SparkSession) SparkSession.active(), table, question);
  }

  /** What every question of a write has: who writes, what rows, and what was said of how. */
  public static ObjectNode question(DescribedTable table, LogicalWriteInfo info) {
    ObjectNode question = question("begin-write", table);
    question.put("query_id", info.queryId());
    question.set("schema", Json.read(info.schema().json()));
    question.set("options", options(info.options()));
    return question;
  }

  /** What every change of rows is asked with: which version of the table, by whom, and what the session says of it. */
  public static ObjectNode question(String call, DescribedTable table) {
    SparkSession session = (SparkSession) SparkSession.active();
    ObjectNode question = table.change(call);
    question.put("metadata_location", table.metadataLocation());
    question.put("branch", table.branch());
    question.set("engine", engine(session.sparkContext()));
    question.put("case_sensitive", session.sessionState().conf().caseSensitiveAnalysis());
    question.put("has_functions", table.hasCatalog());
    question.set("lacking_types", UnsupportedTypes.lacking());
    question.set("session", settings(session));
    return question;
  }

  /** What Apache Iceberg's snapshots tell of Spark and the application. */
  private static ObjectNode engine(SparkContext context) {
    ObjectNode engine = Json.MAPPER.createObjectNode();
    engine.put("engine-name", "spark");
    engine.put("engine-version", context.version());
    engine.put("app-id", context.applicationId());
    engine.put("app-name", context.appName());
    engine.put("spark.app.id", context.applicationId());
    return engine;
  }

  /** Keys of snapshot-property.* keep their case. */
  private static ObjectNode options(CaseInsensitiveStringMap options) {
    return (ObjectNode) Json.MAPPER.valueToTree(options.asCaseSensitiveMap());
  }

  private static ObjectNode settings(SparkSession session) {
    ObjectNode settings = Json.MAPPER.createObjectNode();
    Map all = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    for (Iterator it = all.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      String key = (String) entry.getKey();
      if (key.startsWith("spark.sql.iceberg.") || key.startsWith("spark.wap.")) {
        settings.put(key, (String) entry.getValue());
      }
    }
    settings.put("spark.sql.adaptive.advisoryPartitionSizeInBytes", String.valueOf(
        session.sessionState().conf().getConf(
            org.apache.spark.sql.internal.SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES())));
    settings.put("spark.io.compression.codec", session.sparkContext().getConf().get("spark.io.compression.codec", "lz4"));
    return settings;
  }
}
