package hms_iceberg.bridge.source;

import hms_iceberg.bridge.catalog.RequestedTable;
import hms_iceberg.bridge.catalog.TableReads;
import hms_iceberg.bridge.metastore.MetastoreRows;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Generation;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.analysis.AsOfTimestamp;
import org.apache.spark.sql.catalyst.analysis.AsOfVersion;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** format("iceberg") of readers and writers, and of streams. */
public class IcebergSource implements SupportsCatalogOptions, StreamSourceProvider, CreatableRelationProvider {
  /** Spark's own options of time travel, in lower case. */
  private static final String VERSION = "versionasof";
  private static final String TIMESTAMP = "timestampasof";

  private Table table;

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    table = loaded(options);
    return table.schema();
  }

  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
    return new Transform[0];
  }

  /**
   * The table whose schema was inferred: it must not be another version of it. Spark asks for it where a stream is
   * written, and there without its catalog.
   */
  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    Table found = table != null ? table : loaded(new CaseInsensitiveStringMap(properties));
    return found instanceof IcebergTable ? ((IcebergTable) found).withoutCatalog() : found;
  }

  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    String path = path(options);
    return new RequestedTable(TableReads.ident(path), path, others(options));
  }

  public String extractCatalog(CaseInsensitiveStringMap options) {
    return TableReads.catalog(path(options)).name();
  }

  public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get(VERSION));
  }

  public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get(TIMESTAMP));
  }

  public boolean supportsExternalMetadata() {
    return false;
  }

  /** Spark asks whether there is a source of this kind too, and takes it where a table is not one that can be streamed. */
  public Tuple2 sourceSchema(
      SQLContext context, Option schema, String provider, scala.collection.immutable.Map parameters) {
    Table table = loaded(new CaseInsensitiveStringMap(CollectionConverters.asJava(parameters)));
    if (!(table instanceof IcebergTable)) {
      throw Failures.of("UnsupportedError: cannot stream " + table.name() + ": it is not made of appended rows."
          + " Stream the table itself, or read this with spark.read.", null);
    }
    return new Tuple2("iceberg", table.schema());
  }

  public Source createSource(
      SQLContext context, String checkpoint, Option schema, String provider,
      scala.collection.immutable.Map parameters) {
    throw new UnsupportedOperationException("Streams of " + provider + " are made of tables.");
  }

  private static Table loaded(CaseInsensitiveStringMap options) {
    String path = path(options);
    Object travel = travel(options);
    return TableReads.load(path, version(travel), micros(travel), others(options));
  }

  /** Null if the options say none. */
  public static Object travel(CaseInsensitiveStringMap options) {
    Option travel = Generation.travel(options, TIMESTAMP, VERSION, SQLConf.get());
    return travel.isEmpty() ? null : travel.get();
  }

  public static String version(Object travel) {
    return travel instanceof AsOfVersion ? ((AsOfVersion) travel).version() : null;
  }

  public static Long micros(Object travel) {
    return travel instanceof AsOfTimestamp ? Long.valueOf(((AsOfTimestamp) travel).timestamp()) : null;
  }

  private static Map others(CaseInsensitiveStringMap options) {
    Map others = new HashMap(options);
    others.remove(VERSION);
    others.remove(TIMESTAMP);
    return others;
  }

  private static String path(CaseInsensitiveStringMap options) {
    String path = options.get("path");
    if (path == null) {
      throw Failures.of("InvalidInputError: format(\"iceberg\") needs a table: load(\"db.t\"), save(\"db.t\"), or"
          + " load(\"path/to/table\").", null);
    }
    return path;
  }

  /** What DataFrameWriter.save ends in. */
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters, Dataset data) {
    Option path = parameters.get("path");
    throw MetastoreRows.notWritable(path.isEmpty() ? "" : (String) path.get(), "save");
  }
}
