package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.files.ReadSettings;
import hms_iceberg.bridge.parquet.VariantGroups;
import hms_iceberg.bridge.read.FileReader;
import hms_iceberg.bridge.read.SplitReaders;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.ExecutorConf;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * What a query reads of a table. Files are planned when they are first asked for: Spark makes scans for statements, such
 * as a DELETE of whole partitions, that read nothing.
 */
public final class TableScan
    implements Scan, Batch, SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
  public static final int NO_LIMIT = -1;
  /** Apache Iceberg's name for it. */
  private static final String GROUPING = "spark.sql.iceberg.planning.preserve-data-grouping";

  private final SparkSession session = (SparkSession) SparkSession.active();
  private final DescribedTable table;
  private final StructType required;
  private final List conditions;
  private final int limit;
  private final StreamMaker streams;
  private final RowChange change;
  private final ObjectNode question;
  private final RuntimeFilters learnt = new RuntimeFilters();
  private PlannedScan planned;

  /**
   * The conditions are Catalyst's, on columns that have the names which they have in the table.
   *
   * @param limit how many rows are enough, or NO_LIMIT
   * @param streams null for a batch of a stream
   * @param change the statement that changes the rows which are read; null if they are only read
   */
  public TableScan(
      DescribedTable table, StructType required, List conditions, int limit, StreamMaker streams, RowChange change) {
    this.limit = limit;
    this.streams = streams;
    this.change = change;
    this.table = table;
    this.conditions = conditions;
    this.required = required;
    this.question = ScanQuestion.of(table, required, filter());
    SQLConf conf = session.sessionState().conf();
    if (conf.cboEnabled() || conf.planStatsEnabled()) {
      ScanQuestion.addStatistics(question, required);
    }
    ScanQuestion.addChange(question, change);
    if (limit != NO_LIMIT) {
      question.put("row_counts", true);
    }
  }

  /** The files that only Python reads; null if there are none. */
  private WorkerFiles workerFiles() {
    return planned().files.workerFiles();
  }

  private synchronized PlannedScan planned() {
    if (planned == null) {
      UnsupportedTypes.refuse(table.name(), wanted());
      ScanFiles files = ScanQuestion.ask(table, question);
      planned = new PlannedScan(files, conditions, table.identityColumns(), replacesFiles());
      if (change != null) {
        change.planned(files.paths());
      }
    }
    return planned;
  }

  private ObjectNode filter() {
    ObjectNode filter = ScanQuestion.filter(conditions, ScanQuestion.attributes(conditions));
    return change == null ? filter : change.planFilter(filter);
  }

  private boolean replacesFiles() {
    return change != null && change.replacesFiles();
  }

  private StructType wanted() {
    return (StructType) Structs.withIds(required, table.idSchema());
  }

  public StructType readSchema() {
    return required;
  }

  public String description() {
    StructType ofFiles = planned().columns(required).ofFiles;
    return "iceberg " + planned().files.description() + ", PushedFilters: " + Arrays.asList(filters())
        + ", ReadSchema: " + ofFiles.catalogString();
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return returnsBatches() ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  private boolean returnsBatches() {
    boolean ofStream = streams == null && change == null;
    return mayReturnBatches(table, required) || !ofStream && areBatches(required) && workerFiles() == null;
  }

  /** Whether all that is ever read of a table, as of a stream, is read in batches. */
  public static boolean mayReturnBatches(DescribedTable table, StructType columns) {
    return table.isReadBySpark() && areBatches(columns);
  }

  private static boolean areBatches(StructType columns) {
    return new ParquetFileFormat().supportBatch((SparkSession) SparkSession.active(), columns);
  }

  /** The size of the files, as much of it as the columns take that are read; who plans by cost wants that of the rows. */
  public Statistics estimateStatistics() {
    PlannedScan scan = planned();
    if (question.has("statistics")) {
      return new ScanStatistics(
          scan.rows() * (8 + required.defaultSize()), scan.rows(), scan.files.statistics(), required);
    }
    double share = (8.0 + required.defaultSize()) / (8.0 + table.schema().defaultSize());
    double factor = session.sessionState().conf().fileCompressionFactor();
    long size = (long) (factor * scan.bytes * Math.min(share, 1.0));
    return new ScanStatistics(size, -1, scan.files.statistics(), required);
  }

  public Partitioning outputPartitioning() {
    boolean keeps = "true".equalsIgnoreCase(session.sessionState().conf().getConfString(GROUPING, "false"));
    return keeps ? planned().partitioning(required) : new UnknownPartitioning(0);
  }

  /** Rows that match nothing are needed too, if their files are replaced. */
  public NamedReference[] filterAttributes() {
    if (replacesFiles()) {
      return new NamedReference[0];
    }
    return RuntimeFilters.columns(planned().files.plannedPartitions(), required, table.hides(MetadataColumns.FILE));
  }

  public void filter(Predicate[] predicates) {
    learnt.add(predicates);
  }

  public Batch toBatch() {
    return this;
  }

  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return streams.stream(checkpoint, required, conditions);
  }

  public InputPartition[] planInputPartitions() {
    SparkSession sized = (SparkSession) table.sized(session);
    int[] numbers = numbers();
    if (outputPartitioning() instanceof KeyGroupedPartitioning) {
      return planned().keyed(sized, required, numbers);
    }
    InputPartition[] partitions = planned().partitions(sized, required, numbers);
    if (workerFiles() == null) {
      return partitions;
    }
    List all = new ArrayList(Arrays.asList(partitions));
    List ofPartitions = ScanQuestion.on(conditions, table.identityColumns());
    Set named = change == null ? null : change.filesToRead();
    all.addAll(Arrays.asList(workerFiles().partitions(sized, table, required, ofPartitions, named)));
    return (InputPartition[]) all.toArray(new InputPartition[0]);
  }

  /** The numbers of the files that are read. */
  private int[] numbers() {
    int[] numbers = planned().numbers(learnt, change == null ? null : change.filesToRead());
    return limit == NO_LIMIT || workerFiles() != null ? numbers : planned().files.enough(numbers, limit);
  }

  public PartitionReaderFactory createReaderFactory() {
    PlannedScan scan = planned();
    FileReader.Wanted columns = scan.columns(wanted());
    Configuration conf = session.sessionState().newHadoopConf();
    ReadSettings settings = ReadSettings.of(session, conf, required);
    settings.returnBatches = returnsBatches();
    FileReader reader = new FileReader(
        ExecutorConf.of(session, conf), columns, scan.files.nameMapping(), filters(),
        replacesFiles() ? null : VariantGroups.tests(question.get("filter")), scan.files.marksDeleted(), settings);
    return new SplitReaders(reader);
  }

  /** What readers may leave rows out by. */
  private Filter[] filters() {
    List filters = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      Option filter = DataSourceStrategy$.MODULE$.translateFilter((Expression) conditions.get(i), true);
      if (filter.isDefined()) {
        filters.add(filter.get());
      }
    }
    return (Filter[]) filters.toArray(new Filter[0]);
  }

  public CustomMetric[] supportedCustomMetrics() {
    return ScanMetrics.SUPPORTED;
  }

  public CustomTaskMetric[] reportDriverMetrics() {
    return planned().metrics(numbers());
  }

  /** Plans that use both can share the work. */
  public boolean equals(Object other) {
    if (!(other instanceof TableScan)) {
      return false;
    }
    TableScan that = (TableScan) other;
    return table.equals(that.table) && required.equals(that.required) && change == that.change
        && limit == that.limit
        && question.equals(that.question)
        && Arrays.equals(filters(), that.filters()) && isSame(that);
  }

  /** Whether conditions that have no text, such as functions of users, chose the same partitions. */
  private boolean isSame(TableScan that) {
    return conditions.isEmpty() || planned().keepsSame(that.planned());
  }

  public int hashCode() {
    return 31 * table.hashCode() + required.hashCode();
  }

  public String toString() {
    return "Iceberg " + table.name();
  }
}
