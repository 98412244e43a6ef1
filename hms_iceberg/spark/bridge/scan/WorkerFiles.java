package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.read.WorkerRows;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.Texts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FilePartition$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The files of a scan that Python workers read through Arrow, because no reader of the JVM can: those with nanoseconds,
 * encrypted ORC and Avro files, and such files of tables with variants or shapes. Spark packs them into partitions by
 * their sizes; what it hands a worker is the task of each, and a function in Python makes the rows of the tasks.
 */
public final class WorkerFiles {
  /** PythonEvalType.SQL_MAP_ARROW_ITER_UDF. */
  private static final int MAP_ARROW = 207;

  private static final String KEY = "hms_iceberg.worker-task";
  private static final StructField TASK = new StructField("task", BinaryType$.MODULE$, false, Metadata.empty());
  /** Between Spark and its workers, rows are counted by their columns. */
  private static final StructField ROW = new StructField("row", BooleanType$.MODULE$, true, Metadata.empty());

  private final Texts paths;
  private final long[] sizes;
  private final byte[][] tasks;
  private final boolean marksDeleted;

  public WorkerFiles(int count, Answer plan, boolean marksDeleted) {
    this.paths = plan.takeTexts(count);
    this.sizes = plan.takeLongs(count);
    this.tasks = plan.takeBlobs(count);
    this.marksDeleted = marksDeleted;
  }

  Texts paths() {
    return paths;
  }

  public long bytes() {
    long total = 0;
    for (int i = 0; i < sizes.length; i++) {
      total += sizes[i];
    }
    return total;
  }

  /**
   * Partitions of the rows with some columns of a table.
   *
   * @param conditions those that nobody else tests on the rows
   * @param named the paths of the files that are read; null for all
   */
  public InputPartition[] partitions(
      SparkSession session, DescribedTable table, StructType required, List conditions, Set named) {
    Map tested = new HashMap();
    for (Iterator it = ScanQuestion.attributes(conditions).iterator(); it.hasNext();) {
      Attribute column = (Attribute) it.next();
      tested.put(column.name(), column);
    }
    List output = new ArrayList();
    for (int i = 0; i < required.fields().length; i++) {
      Object column = tested.remove(required.fields()[i].name());
      output.add(column == null ? attribute(required.fields()[i]) : column);
    }
    List read = new ArrayList(output);
    read.addAll(tested.values());
    byte[] command = command(table, read);
    LogicalPlan rows = plan(
        session, table.planner(), command, read.isEmpty() ? Collections.singletonList(attribute(ROW)) : read, named);
    for (int i = 0; i < conditions.size(); i++) {
      rows = new Filter((Expression) conditions.get(i), rows);
    }
    LogicalPlan projected = new Project(CollectionTools.seq(output), rows);
    return WorkerRows.of(((Dataset) Dataset$.MODULE$.ofRows(session, projected)).queryExecution().toRdd());
  }

  /** What Python workers make of the files. */
  private LogicalPlan plan(SparkSession session, Planner planner, byte[] command, List output, Set named) {
    List groups = groups(session, named);
    JavaSparkContext context = new JavaSparkContext(session.sparkContext());
    JavaRDD rows = context.parallelize(groups, Math.max(1, groups.size())).flatMap(new Each());
    LogicalPlan tasks =
        ((Dataset) session.createDataFrame(rows, new StructType(new StructField[] {TASK}))).logicalPlan();
    return inWorkers("read_iceberg_files", planner.worker(), command, output, tasks);
  }

  /** The tasks of each partition. */
  private List groups(SparkSession session, Set named) {
    List files = new ArrayList();
    long bytes = 0;
    for (int i = 0; i < paths.size(); i++) {
      if (named == null || named.contains(paths.text(i))) {
        files.add(new PartitionedFile(
            InternalRow.empty(), SparkPath.fromPath(new Path(paths.text(i))), 0L, sizes[i], new String[0], 0L, sizes[i],
            (scala.collection.immutable.Map) Map$.MODULE$.empty().updated(KEY, tasks[i])));
        bytes += sizes[i];
      }
    }
    List groups = new ArrayList();
    long most = PlannedScan.maxSplitBytes(session, bytes, files.size());
    List packed = CollectionConverters.asJava(
        FilePartition$.MODULE$.getFilePartitions(session, CollectionTools.seq(files), most));
    for (int i = 0; i < packed.size(); i++) {
      PartitionedFile[] together = ((FilePartition) packed.get(i)).files();
      byte[][] group = new byte[together.length][];
      for (int j = 0; j < group.length; j++) {
        group[j] = (byte[]) together[j].otherConstantMetadataColumnValues().apply(KEY);
      }
      groups.add(group);
    }
    return groups;
  }

  /** The tasks of a group, one by one. */
  static final class Each implements FlatMapFunction {
    public Iterator call(Object group) {
      List rows = new ArrayList();
      for (Iterator it = Arrays.asList((byte[][]) group).iterator(); it.hasNext();) {
        rows.add(RowFactory.create(new Object[] {it.next()}));
      }
      return rows.iterator();
    }
  }

  /**
   * What a function in Python makes of rows: batches of these attributes.
   *
   * @param worker tells how Python workers are started
   */
  private static LogicalPlan inWorkers(
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
    ArrayNode types = question.putArray("types");
    for (int i = 0; i < columns.size(); i++) {
      names.add(((Attribute) columns.get(i)).name());
      types.add(Json.read(((Attribute) columns.get(i)).dataType().json()));
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
}
