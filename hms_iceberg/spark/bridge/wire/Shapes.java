package hms_iceberg.bridge.wire;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.types.StructType;
import scala.collection.mutable.Buffer;

/**
 * What the bridge relies on of Spark and the compiler cannot see: names it compares, members it reaches by reflection,
 * constructors, and parameters it knows by their place. They are looked at when a session is extended, since a version
 * that lacks one would otherwise go wrong without a word.
 */
public final class Shapes {
  private static final String PARQUET = "org.apache.spark.sql.execution.datasources.parquet.";
  private static final String LOGICAL = "org.apache.spark.sql.catalyst.plans.logical.";
  private static final String NO_THRIFT_SERVER = "the Thrift server cannot be started with this session";

  /** From which version on, or up to which one, the class, its members, and what is lost without them (null: the extension cannot work). */
  private static final String[][] RELIED_ON = {
    {"4.1", "org.apache.spark.sql.execution.command.SaveAsV1TableCommand", "tableDesc mode query", null},
    {"4.1", LOGICAL + "AddCheckConstraint", "", null},
    {"4.3", LOGICAL + "CreateTableLike", "name source provider location properties ifNotExists", null},
    {"", LOGICAL + "AppendData$", "byPosition byName", null},
    {"4.1", "org.apache.spark.sql.execution.QueryExecution$", "create", null},
    {"", "org.apache.spark.sql.connector.catalog.CatalogV2Util$", "structTypeToV2Columns", null},
    {"", "org.apache.spark.sql.connector.catalog.ColumnDefaultValue", "getSql", null},
    {"4.1", "org.apache.spark.sql.execution.CacheManager", "recacheTableOrView cachedData",
      "what is cached of a table stays as it is when a procedure changes the table"},
    {"", "org.apache.spark.sql.util.ArrowUtils", "toArrowSchema", null},
    {"", PARQUET + "VectorizedParquetRecordReader", "initialize", null},
    {"4.0", "org.apache.spark.sql.catalyst.analysis.Analyzer", "hintResolutionRules", null},
    {"-3.5", "org.apache.spark.sql.internal.SessionState", "analyzer", null},
    {"-3.5", "org.apache.parquet.hadoop.ParquetWriter$Builder", "encodingPropsBuilder", null},
    {"", "org.apache.spark.sql.internal.SharedState", "jarClassLoader", NO_THRIFT_SERVER},
    {"", "org.apache.hadoop.hive.ql.metadata.Hive", "didRegisterAllFuncs", NO_THRIFT_SERVER},
    {"", "org.apache.spark.sql.execution.vectorized.WritableColumnVector", "dictionary",
      "reading columns of text takes up to a third longer"},
    {"", PARQUET + "ParquetDictionary", "dictionary", "reading columns of text takes up to a third longer"},
    {"", "org.apache.parquet.io.MessageColumnIO$MessageColumnIORecordConsumer", "columnWriters columns",
      "writing Parquet takes longer"},
    {"4.1", "org.apache.parquet.hadoop.ParquetWriter$Builder", "withRowGroupRowCountLimit",
      "the rows of a row group of Parquet are not limited"},
  };

  private Shapes() {}

  /** What this Spark lacks, and what is lost without it; an empty text if the extension cannot work. */
  public static Map missing(String version) {
    Map missing = new LinkedHashMap();
    for (int i = 0; i < RELIED_ON.length; i++) {
      String[] each = RELIED_ON[i];
      String absent = isFor(each[0], version) ? absent(each[1], each[2]) : null;
      if (absent != null) {
        missing.put(absent, each[3] == null ? "" : each[3]);
      }
    }
    for (int i = 0; i < Constructors.unknown().size(); i++) {
      missing.put(Constructors.unknown().get(i), "");
    }
    if (!copiesAllRules()) {
      missing.put("a Buffer for what each inject method of SparkSessionExtensions takes", "");
    }
    if (!placesOfCatalogTable()) {
      missing.put("the parameter `properties` of CatalogTable", "");
    }
    return missing;
  }

  private static boolean isFor(String bound, String version) {
    return bound.isEmpty()
        || (bound.startsWith("-") ? release(version) <= release(bound.substring(1)) : release(version) >= release(bound));
  }

  /** The major and minor number of a version, as one number that grows with it. */
  private static int release(String version) {
    String[] numbers = version.split("\\.");
    return Integer.parseInt(numbers[0]) * 1000 + Integer.parseInt(numbers[1]);
  }

  /** The class, or the first of its fields and methods, that there is not; null if all are there. */
  public static String absent(String type, String members) {
    try {
      Class found = Class.forName(type, false, Thread.currentThread().getContextClassLoader());
      String[] names = members.isEmpty() ? new String[0] : members.split(" ");
      for (int i = 0; i < names.length; i++) {
        if (!has(found, names[i])) {
          return type + "." + names[i];
        }
      }
      return null;
    } catch (ClassNotFoundException e) {
      return type;
    }
  }

  private static boolean has(Class type, String member) {
    Field[] fields = type.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].getName().equals(member)) {
        return true;
      }
    }
    Method[] methods = type.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals(member)) {
        return true;
      }
    }
    return false;
  }

  /** Whether the rules of other extensions, which an extended session takes over, are where they are looked for. */
  private static boolean copiesAllRules() {
    int buffers = 0;
    Field[] fields = SparkSessionExtensions.class.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      buffers += Buffer.class.isAssignableFrom(fields[i].getType()) ? 1 : 0;
    }
    int kinds = 0;
    Method[] methods = SparkSessionExtensions.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      kinds += methods[i].getName().startsWith("inject") ? 1 : 0;
    }
    return buffers == kinds;
  }

  private static boolean placesOfCatalogTable() {
    try {
      CatalogTable view = SparkVersions.viewContext("v", new StructType(), new String[] {"c", "n"});
      return view.viewCatalogAndNamespace().size() == 2 && view.stats().isEmpty();
    } catch (RuntimeException e) {
      return false;
    }
  }
}
