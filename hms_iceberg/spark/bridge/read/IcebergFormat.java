package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** Spark's Parquet format, but columns are found as Iceberg finds them and deleted rows are left out. */
public final class IcebergFormat extends ParquetFileFormat {
  private final String table;
  private final String description;
  private final StructType idSchema;
  private final String nameMapping;
  private final boolean plain;
  private final boolean marksDeleted;
  private final boolean whole;
  private final String variantTests;

  /**
   * Reads a plan's files.
   *
   * @param whole whether all rows of a file must be read, and by one task
   * @param filter what Spark tests rows by, as FilterText tells it; or null
   */
  IcebergFormat(IcebergTable table, ScanFiles files, boolean whole, JsonNode filter) {
    this.table = table.name();
    this.description = files.description();
    this.idSchema = table.idSchema();
    this.nameMapping = files.nameMapping();
    this.plain = files.isPlain();
    this.marksDeleted = files.marksDeleted();
    this.whole = whole;
    this.variantTests = whole ? null : VariantGroups.tests(filter);
  }

  public boolean isSplitable(SparkSession session, Map options, Path path) {
    return !whole && super.isSplitable(session, options, path);
  }

  /** Spark shows this where it names what is scanned. */
  public String shortName() {
    return "iceberg " + description;
  }

  public String toString() {
    return "Iceberg";
  }

  /** If columns may be filled in, or rows left out, the generated code must not insist on Spark's vectors. */
  public Option vectorTypes(StructType required, StructType partition, SQLConf conf) {
    boolean same = plain && WidenedColumn.keepsVectors(conf);
    StructField[] fields = ((StructType) withIds(required, idSchema)).fields();
    for (int i = 0; i < fields.length; i++) {
      same = same && fields[i].dataType() instanceof AtomicType && !fields[i].metadata().contains(FileColumns.KIND)
          && !fields[i].metadata().contains(FileColumns.DEFAULT);
    }
    return same ? super.vectorTypes(required, partition, conf) : Option.empty();
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType dataSchema, StructType partitionSchema, StructType requiredSchema,
      Seq filters, Map options, Configuration conf) {
    // Called for what it puts into conf: everything that this version of Spark's Parquet reader looks up there.
    super.buildReaderWithPartitionValues(
        session, dataSchema, partitionSchema, requiredSchema, filters, options, conf);
    FixedSettings.apply(conf);
    StructType wanted = (StructType) withIds(requiredSchema, idSchema);
    UnsupportedTypes.refuse(table, wanted);
    SQLConf sqlConf = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
    ReadSettings settings = new ReadSettings();
    settings.returnBatches = "true".equals(options.getOrElse(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), new No()));
    settings.unsafeRows = !sqlConf.parquetVectorizedReaderEnabled();
    settings.offHeap = sqlConf.offHeapColumnVectorEnabled();
    settings.batchSize = sqlConf.parquetVectorizedReaderBatchSize();
    settings.pushFilters = sqlConf.parquetFilterPushDown();
    settings.pushDates = sqlConf.parquetFilterPushDownDate();
    settings.pushTimestamps = sqlConf.parquetFilterPushDownTimestamp();
    settings.pushDecimals = sqlConf.parquetFilterPushDownDecimal();
    settings.pushStrings = sqlConf.parquetFilterPushDownStringPredicate();
    settings.inThreshold = sqlConf.parquetFilterPushDownInFilterThreshold();
    return new FileReader(
        ExecutorConf.of(session, conf), wanted, partitionSchema, nameMapping,
        CollectionTools.filters(filters), variantTests, marksDeleted, settings);
  }

  /** What Spark asks for (perhaps fewer nested fields) with the ids of the table's fields, found by name. */
  private static DataType withIds(DataType asked, DataType known) {
    if (asked instanceof StructType && known instanceof StructType) {
      StructField[] fields = ((StructType) asked).fields();
      StructField[] named = new StructField[fields.length];
      for (int i = 0; i < fields.length; i++) {
        StructField match = field((StructType) known, fields[i].name());
        named[i] = match == null ? fields[i] : new StructField(
            match.name(), withIds(fields[i].dataType(), match.dataType()), true, match.metadata());
      }
      return new StructType(named);
    }
    if (asked instanceof ArrayType && known instanceof ArrayType) {
      return new ArrayType(withIds(((ArrayType) asked).elementType(), ((ArrayType) known).elementType()), true);
    }
    if (asked instanceof MapType && known instanceof MapType) {
      return new MapType(
          withIds(((MapType) asked).keyType(), ((MapType) known).keyType()),
          withIds(((MapType) asked).valueType(), ((MapType) known).valueType()), true);
    }
    // Spark asks for parts of a variant as for a struct, and its reader knows how to make them.
    return known instanceof VariantType ? asked : known;
  }

  private static StructField field(StructType struct, String name) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].name().equals(name)) {
        return fields[i];
      }
    }
    return null;
  }

  static final class No extends scala.runtime.AbstractFunction0 {
    public Object apply() {
      return "false";
    }
  }
}
