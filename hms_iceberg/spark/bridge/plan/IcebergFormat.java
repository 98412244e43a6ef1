package hms_iceberg.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.FieldMetadata;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.columns.WidenedColumn;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.parquet.VariantGroups;
import hms_iceberg.bridge.read.FileReader;
import hms_iceberg.bridge.scan.ScanFiles;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.ExecutorConf;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
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
    StructField[] fields = ((StructType) Structs.withIds(required, idSchema)).fields();
    for (int i = 0; i < fields.length; i++) {
      same = same && fields[i].dataType() instanceof AtomicType && !fields[i].metadata().contains(FieldMetadata.KIND)
          && !fields[i].metadata().contains(FieldMetadata.DEFAULT);
    }
    return same ? super.vectorTypes(required, partition, conf) : Option.empty();
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType dataSchema, StructType partitionSchema, StructType requiredSchema,
      Seq filters, Map options, Configuration conf) {
    StructType wanted = (StructType) Structs.withIds(requiredSchema, idSchema);
    UnsupportedTypes.refuse(table, wanted);
    ReadSettings settings = ReadSettings.of(session, conf, requiredSchema);
    SQLConf sqlConf = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
    settings.returnBatches = "true".equals(options.getOrElse(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), new No()));
    settings.unsafeRows = !sqlConf.parquetVectorizedReaderEnabled();
    return new FileReader(
        ExecutorConf.of(session, conf), new FileReader.Wanted(wanted, partitionSchema, null), nameMapping,
        CollectionTools.filters(filters), variantTests, marksDeleted, settings);
  }

  public static final class No extends scala.runtime.AbstractFunction0 {
    public Object apply() {
      return "false";
    }
  }
}
