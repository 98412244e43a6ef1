package hms_iceberg.bridge.wire;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFilters;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** The constructors of Spark's classes that got further parameters from version to version, by all their parameters. */
final class Constructors {
  private static final List UNKNOWN = new ArrayList();
  private static final Class BOOLEAN = Boolean.TYPE;
  private static final Class LONG = Long.TYPE;

  /** Of a name, kind, storage and columns; see `defaultOf` of SparkVersions for the others. */
  static final Constructor CATALOG_TABLE = of(CatalogTable.class, new Class[][] {
    { // 3.5
      TableIdentifier.class, CatalogTableType.class, CatalogStorageFormat.class, StructType.class, Option.class,
      Seq.class, Option.class, String.class, LONG, LONG, String.class, Map.class, Option.class, Option.class,
      Option.class, Seq.class, BOOLEAN, BOOLEAN, Map.class, Option.class
    },
    { // 4.0: the collation
      TableIdentifier.class, CatalogTableType.class, CatalogStorageFormat.class, StructType.class, Option.class,
      Seq.class, Option.class, String.class, LONG, LONG, String.class, Map.class, Option.class, Option.class,
      Option.class, Option.class, Seq.class, BOOLEAN, BOOLEAN, Map.class, Option.class
    },
    { // 4.2: the parts of the name
      TableIdentifier.class, CatalogTableType.class, CatalogStorageFormat.class, StructType.class, Option.class,
      Seq.class, Option.class, String.class, LONG, LONG, String.class, Map.class, Option.class, Option.class,
      Option.class, Option.class, Seq.class, BOOLEAN, BOOLEAN, Map.class, Option.class, Option.class
    }
  });
  /** Of the file's columns, what is compared, and how old times are counted. */
  static final Constructor PARQUET_FILTERS = of(ParquetFilters.class, new Class[][] {
    {
      MessageType.class, BOOLEAN, BOOLEAN, BOOLEAN, BOOLEAN, Integer.TYPE, BOOLEAN, RebaseSpec.class // 3.5
    },
    { // 4.3: Spark's columns
      MessageType.class, BOOLEAN, BOOLEAN, BOOLEAN, BOOLEAN, Integer.TYPE, BOOLEAN, RebaseSpec.class, Option.class
    }
  });
  /** Of a line, a position and others that need not be known. */
  static final Constructor ORIGIN = of(Origin.class, new Class[][] {options(7), options(9), options(10)}); // 3.5, 4.0, 4.1
  /** Of a text, where in it, an error's name and its parameters. */
  static final Constructor PARSE_EXCEPTION = of(ParseException.class, new Class[][] {
    {Option.class, Origin.class, Origin.class, String.class, Map.class}, // 3.5: and where it ends
    {Option.class, Origin.class, String.class, Map.class} // 4.1
  });

  private Constructors() {}

  private static Class[] options(int count) {
    Class[] types = new Class[count];
    Arrays.fill(types, Option.class);
    return types;
  }

  /** The one that this Spark has of those that are known, or null. */
  private static Constructor of(Class type, Class[][] known) {
    for (int i = 0; i < known.length; i++) {
      try {
        return type.getConstructor(known[i]);
      } catch (NoSuchMethodException e) {
        continue;
      }
    }
    UNKNOWN.add("a known constructor of " + type.getName());
    return null;
  }

  /** Those that this Spark has in none of the known forms. */
  static List unknown() {
    return UNKNOWN;
  }

  /** How many parameters it has. */
  static int count(Constructor constructor) {
    if (constructor == null) {
      throw new IllegalStateException(unsupported("it lacks " + UNKNOWN));
    }
    return constructor.getParameterTypes().length;
  }

  static Object create(Constructor constructor, Object[] arguments) {
    try {
      return constructor.newInstance(arguments);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(unsupported(constructor + " cannot be called"), e);
    }
  }

  private static String unsupported(String why) {
    return "Spark " + org.apache.spark.package$.MODULE$.SPARK_VERSION() + " is not supported: " + why + ".";
  }
}
