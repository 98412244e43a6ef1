package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.FixedSettings;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The files of a scan that Python workers read through Arrow, because no reader of the JVM can. Spark takes them
 * for files like any others, and packs them into partitions by their sizes; what it reads of each is its task, and a
 * function in Python makes the rows of the tasks.
 */
public final class WorkerFiles implements FileIndex, Cloneable {
  /** PythonEvalType.SQL_MAP_ARROW_ITER_UDF. */
  private static final int MAP_ARROW = 207;

  private static final StructType NONE = new StructType();
  private static final StructType TASK = new StructType(new StructField[] {
      new StructField("task", BinaryType$.MODULE$, false, Metadata.empty())});

  private final String description;
  private final String[] paths;
  private final long[] sizes;
  private final byte[][] tasks;
  private final boolean marksDeleted;
  private RowChange replaced;

  public WorkerFiles(String description, int count, Answer plan, boolean marksDeleted) {
    this.description = description;
    this.paths = plan.takeTexts(count);
    this.sizes = plan.takeLongs(count);
    this.tasks = plan.takeBlobs(count);
    this.marksDeleted = marksDeleted;
  }

  /** The same files for an operation that replaces some of them, and reads no others. */
  public WorkerFiles replacedBy(RowChange change) {
    try {
      WorkerFiles own = (WorkerFiles) clone();
      own.replaced = change;
      return own;
    } catch (CloneNotSupportedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The rows of the files: some columns of a table, as these attributes. */
  public LogicalPlan plan(SparkSession session, DescribedTable table, List columns, List output) {
    UnsupportedTypes.refuse(table.name(), table.idSchema(), columns, true);
    return plan(session, table.planner(), command(table, columns), output);
  }

  /** What Python workers make of the files. */
  public LogicalPlan plan(SparkSession session, Planner planner, byte[] command, List output) {
    HadoopFsRelation relation = new HadoopFsRelation(
        this, NONE, TASK, Option.empty(), new TaskFormat(description), FixedSettings.relationOptions(), session);
    AttributeReference task = attribute(TASK.fields()[0]);
    LogicalPlan scan = SparkVersions.logicalRelation((BaseRelation) relation, only(task));
    return inWorkers("read_iceberg_files", planner.worker(), command, output, scan);
  }

  /**
   * What a function in Python makes of rows: batches of these attributes.
   *
   * @param worker tells how Python workers are started
   */
  public static LogicalPlan inWorkers(
      String name, SimplePythonFunction worker, byte[] command, List output, LogicalPlan rows) {
    SimplePythonFunction function = new SimplePythonFunction(
        command, worker.envVars(), worker.pythonIncludes(), worker.pythonExec(), worker.pythonVer(),
        worker.broadcastVars(), worker.accumulator());
    PythonUDF udf = new PythonUDF(
        name, function, schema(output), rows.output(), MAP_ARROW, true, NamedExpression$.MODULE$.newExprId());
    return Generation.mapInArrow((Expression) udf, CollectionTools.seq(output), rows);
  }

  /** What Python workers run; it is asked for apart from the plan, which is the same whatever the columns. */
  private byte[] command(DescribedTable table, List columns) {
    ObjectNode question = table.question("worker-command");
    question.put("deleted_column", marksDeleted);
    ArrayNode names = question.putArray("columns");
    for (int i = 0; i < columns.size(); i++) {
      names.add(((Attribute) columns.get(i)).name());
    }
    return (byte[]) table.planner().askOnce(question, new Command());
  }

  public static final class Command implements Planner.AnswerReader {
    public Object read(Answer answer) {
      return answer.takeBlobs(1)[0];
    }
  }

  /** An attribute of its own for a field. */
  public static AttributeReference attribute(StructField field) {
    return new AttributeReference(
        field.name(), field.dataType(), field.nullable(), Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
        Nil$.MODULE$);
  }

  private static StructType schema(List output) {
    StructField[] fields = new StructField[output.size()];
    for (int i = 0; i < fields.length; i++) {
      Attribute column = (Attribute) output.get(i);
      fields[i] = new StructField(column.name(), column.dataType(), column.nullable(), Metadata.empty());
    }
    return new StructType(fields);
  }

  private static Seq only(Object element) {
    return CollectionTools.seq(Collections.singletonList(element));
  }

  public StructType partitionSchema() {
    return NONE;
  }

  public long sizeInBytes() {
    long total = 0;
    for (int i = 0; i < sizes.length; i++) {
      total += sizes[i];
    }
    return total;
  }

  public Seq rootPaths() {
    return CollectionTools.seq(Collections.singletonList(new Path(paths[0]).getParent()));
  }

  public String[] inputFiles() {
    return (String[]) paths.clone();
  }

  public void refresh() {}

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    List files = new ArrayList();
    for (int i = 0; i < paths.length; i++) {
      if (replaced != null && !replaced.filesToRead().contains(paths[i])) {
        continue;
      }
      FileStatus status = new FileStatus(sizes[i], false, 1, 128L * 1024 * 1024, 0, new Path(paths[i]));
      files.add(new FileStatusWithMetadata(
          status, (scala.collection.immutable.Map) Map$.MODULE$.empty().updated(TaskFormat.KEY, tasks[i])));
    }
    return only(new PartitionDirectory(InternalRow.empty(), CollectionTools.seq(files)));
  }

  public String toString() {
    return description;
  }
}
