package hms_iceberg.bridge.wire;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.AppendData$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util$;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFilters;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** The few calls whose shape differs between Spark 4.0 and 4.3. */
public final class SparkVersions {
  // Which parameters of CatalogTable they are.
  private static final int PROPERTIES = 11;
  private static final String RECACHE = "recacheTableOrView";

  private SparkVersions() {}

  /** Whether this MERGE is to change the table's columns, which Spark 4.0 reads and forgets. */
  public static boolean ignoresSchemaEvolution(Product merge) {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.0.")
        && Boolean.TRUE.equals(merge.productElement(merge.productArity() - 1));
  }

  /** What the analyzer has to know of a view while it resolves the view's query: where names are looked for. */
  public static CatalogTable viewContext(String name, StructType schema, String[] catalogAndNamespace) {
    scala.collection.immutable.Map properties = (scala.collection.immutable.Map) Map$.MODULE$.empty().updated(
        CatalogTable.VIEW_CATALOG_AND_NAMESPACE(), String.valueOf(catalogAndNamespace.length));
    for (int i = 0; i < catalogAndNamespace.length; i++) {
      properties = (scala.collection.immutable.Map) properties.updated(
          CatalogTable.VIEW_CATALOG_AND_NAMESPACE_PART_PREFIX() + i, catalogAndNamespace[i]);
    }
    return catalogTable(name, CatalogTableType.VIEW(), schema, PROPERTIES, properties);
  }

  /** One with everything but one parameter as it is by default. */
  private static CatalogTable catalogTable(
      String name, CatalogTableType type, StructType schema, int place, Object argument) {
    Object[] arguments = new Object[Constructors.count(Constructors.CATALOG_TABLE)];
    arguments[0] = TableIdentifier.apply(name);
    arguments[1] = type;
    arguments[2] = CatalogStorageFormat.empty();
    arguments[3] = schema;
    for (int i = 4; i < arguments.length; i++) {
      arguments[i] = i == place ? argument : defaultOf(i);
    }
    return (CatalogTable) Constructors.create(Constructors.CATALOG_TABLE, arguments);
  }

  private static Object defaultOf(int place) {
    String name = "$lessinit$greater$default$" + (place + 1);
    try {
      return CatalogTable$.MODULE$.getClass().getMethod(name, new Class[0]).invoke(CatalogTable$.MODULE$, new Object[0]);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + CatalogTable.class, e);
    }
  }

  /** A plan with one thing otherwise; the versions of Spark differ in how many a relation has. */
  public static TreeNode with(TreeNode plan, int place, Object value) {
    Object[] parts = new Object[((Product) plan).productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = i == place ? value : ((Product) plan).productElement(i);
    }
    return plan.makeCopy(parts);
  }

  /**
   * The same write, for which Spark since 4.3 runs no query beforehand that chooses files or partitions: it would read
   * the whole target once more, and a source that answers otherwise the second time would have rows inserted twice.
   */
  public static WriteDelta withoutGroupFilter(WriteDelta plan) {
    return plan.productArity() > 6 ? (WriteDelta) with(plan, 5, Option.empty()) : plan;
  }

  public static ParquetFilters parquetFilters(
      MessageType schema, boolean dates, boolean timestamps, boolean decimals, boolean strings, int inThreshold,
      RebaseSpec rebase) {
    Object[] arguments = new Object[Constructors.count(Constructors.PARQUET_FILTERS)];
    arguments[0] = schema;
    arguments[1] = Boolean.valueOf(dates);
    arguments[2] = Boolean.valueOf(timestamps);
    arguments[3] = Boolean.valueOf(decimals);
    arguments[4] = Boolean.valueOf(strings);
    arguments[5] = Integer.valueOf(inThreshold);
    arguments[6] = Boolean.TRUE;
    arguments[7] = rebase;
    for (int i = 8; i < arguments.length; i++) {
      arguments[i] = Option.empty();
    }
    return (ParquetFilters) Constructors.create(Constructors.PARQUET_FILTERS, arguments);
  }

  /** Starts the reader on a file whose footer is known; the stream is used where this Spark can. */
  public static void initialize(
      VectorizedParquetRecordReader reader, InputSplit split, TaskAttemptContext context, HadoopInputFile file,
      SeekableInputStream stream, ParquetMetadata footer) throws Exception {
    Method[] methods = VectorizedParquetRecordReader.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      Class[] types = methods[i].getParameterTypes();
      if (!"initialize".equals(methods[i].getName()) || types.length < 3 || types[0] != InputSplit.class) {
        continue;
      }
      Object[] arguments = types.length == 3
          ? new Object[] {split, context, Option.apply(footer)}
          : new Object[] {split, context, Option.apply(file), Option.apply(stream), Option.apply(footer)};
      if (types.length == 3) {
        stream.close();
      }
      try {
        methods[i].invoke(reader, arguments);
      } catch (InvocationTargetException e) {
        throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
      }
      return;
    }
    throw new IllegalStateException("This version of Spark has no way to read a Parquet file with a given footer.");
  }

  /** The schema of rows in Arrow, times with a zone in UTC. */
  public static Schema arrowSchema(StructType schema) {
    Method[] methods = ArrowUtils.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      Class[] types = methods[i].getParameterTypes();
      if (!"toArrowSchema".equals(methods[i].getName()) || types.length < 4) {
        continue;
      }
      Object[] arguments = new Object[types.length];
      arguments[0] = schema;
      arguments[1] = "UTC";
      arguments[2] = Boolean.TRUE;
      for (int j = 3; j < arguments.length; j++) {
        arguments[j] = Boolean.FALSE;
      }
      try {
        return (Schema) methods[i].invoke(null, arguments);
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("This version of Spark is not supported: " + methods[i], e);
      }
    }
    throw new IllegalStateException("This version of Spark has no Arrow schema for rows.");
  }

  /** The Parquet of Spark 4.0 limits row groups by their size only. */
  public static void limitRowsOfGroups(ParquetWriter.Builder builder, Configuration conf) {
    Method[] methods = ParquetWriter.Builder.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if ("withRowGroupRowCountLimit".equals(methods[i].getName())) {
        try {
          methods[i].invoke(builder, new Object[] {Integer.valueOf(conf.getInt("parquet.block.row.count.limit", 1048576))});
        } catch (ReflectiveOperationException e) {
          throw new IllegalStateException("This version of Spark is not supported: " + ParquetWriter.class, e);
        }
      }
    }
  }

  /** Spark's error for text that is no statement; 4.0 wants the end of what is wrong as well. */
  public static Exception parseException(String text, String near, String problem, int line, int position) {
    Object parameters = ((scala.collection.immutable.Map) Map$.MODULE$.empty())
        .updated("error", near.isEmpty() ? "end of input" : "'" + near + "'").updated("hint", ". " + problem);
    Object origin = origin(Option.apply(Integer.valueOf(line)), Option.apply(Integer.valueOf(position)));
    return parseException(text, origin, "PARSE_SYNTAX_ERROR", parameters);
  }

  private static Object origin(Option line, Option position) {
    Object[] places = new Object[Constructors.count(Constructors.ORIGIN)];
    Arrays.fill(places, Option.empty());
    places[0] = line;
    places[1] = position;
    return Constructors.create(Constructors.ORIGIN, places);
  }

  private static Exception parseException(String text, Object origin, String condition, Object parameters) {
    Object[] arguments = Constructors.count(Constructors.PARSE_EXCEPTION) == 4
        ? new Object[] {Option.apply(text), origin, condition, parameters}
        : new Object[] {Option.apply(text), origin, origin, condition, parameters};
    return (Exception) Constructors.create(Constructors.PARSE_EXCEPTION, arguments);
  }

  /**
   * An error of a parser as a proxy of it may throw it: of the errors that Java checks, Spark's interface declares only
   * those of syntax, while its parser throws those of scripts as well.
   */
  public static Throwable ofParser(Throwable error, String text) {
    if (error instanceof RuntimeException || error instanceof Error || error instanceof ParseException
        || !(error instanceof SparkThrowable)) {
      return error;
    }
    SparkThrowable told = (SparkThrowable) error;
    scala.collection.immutable.Map parameters = CollectionTools.map(told.getMessageParameters());
    Object nowhere = origin(Option.empty(), Option.empty());
    Exception made = parseException(text, nowhere, Generation.condition(told), parameters);
    made.addSuppressed(error);
    return made;
  }

  /** Runs a plan on those versions of tables that are in it; Spark 4.1 and later look for newer ones unless told not to. */
  public static QueryExecution execution(SparkSession session, LogicalPlan plan) {
    try {
      return (QueryExecution) invoke(QueryExecution$.MODULE$, "create", new Object[] {session, plan, Boolean.FALSE});
    } catch (IllegalStateException e) {
      return session.sessionState().executePlan(plan, CommandExecutionMode.ALL());
    }
  }

  /** The SQL of a column's DEFAULT; null if Spark has it as an expression only. */
  public static String sql(ColumnDefaultValue value) {
    return (String) invoke(value, "getSql", new Object[0]);
  }

  /** The columns of a struct. */
  public static Column[] columns(StructType schema) {
    Object util = CatalogV2Util$.MODULE$;
    try {
      return (Column[]) invoke(util, "structTypeToV2Columns", new Object[] {schema});
    } catch (IllegalStateException e) {
      return (Column[]) invoke(util, "structTypeToV2Columns", new Object[] {schema, Boolean.FALSE});
    }
  }

  /** An INSERT of rows by position; Spark 4.3 asks whether the table's columns may change with it. */
  public static LogicalPlan append(NamedRelation table, LogicalPlan rows) {
    return append("byPosition", table, rows, (scala.collection.immutable.Map) Map$.MODULE$.empty());
  }

  /** The same with columns matched by their names. */
  public static LogicalPlan appendByName(NamedRelation table, LogicalPlan rows, scala.collection.immutable.Map options) {
    return append("byName", table, rows, options);
  }

  private static LogicalPlan append(
      String how, NamedRelation table, LogicalPlan rows, scala.collection.immutable.Map options) {
    try {
      return (LogicalPlan) invoke(AppendData$.MODULE$, how, new Object[] {table, rows, options});
    } catch (IllegalStateException e) {
      return (LogicalPlan) invoke(AppendData$.MODULE$, how, new Object[] {table, rows, options, Boolean.FALSE});
    }
  }

  /** Whether a table's name means what is cached of it; before 4.1, another version of a table is another plan. */
  static boolean answersNamesByCache(CacheManager cache) {
    return method(cache, RECACHE, 3) != null;
  }

  /** Makes what is cached of a name anew, but for versions of the past. */
  static void recache(CacheManager cache, SparkSession session, Seq name) {
    invoke(cache, RECACHE, new Object[] {session, name, Boolean.FALSE});
  }

  private static Object invoke(Object target, String name, Object[] arguments) {
    Method found = method(target, name, arguments.length);
    if (found == null) {
      throw new IllegalStateException("This version of Spark is not supported: " + target.getClass() + " has no " + name);
    }
    try {
      found.setAccessible(true); // of a class that is not public, as some are since 4.3
      return found.invoke(target, arguments);
    } catch (ReflectiveOperationException e) {
      throw Failures.unchecked(e.getCause() instanceof Exception ? (Exception) e.getCause() : e);
    }
  }

  private static Method method(Object target, String name, int arguments) {
    Method[] methods = target.getClass().getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals(name) && methods[i].getParameterTypes().length == arguments) {
        return methods[i];
      }
    }
    return null;
  }
}
