package hms_iceberg.bridge.orc;

import hms_iceberg.bridge.files.PushedFilters;
import java.math.BigDecimal;
import java.sql.Date;
import java.time.LocalDate;
import java.util.Map;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;

/**
 * Spark's filters as ORC's search argument, by which stripes and row groups are left out. Times are not among them: ORC
 * compares them in the zone of their writer; nor is text of a fixed length, whose statistics may lack the padding.
 */
final class OrcSearch {
  private final SearchArgument.Builder builder = SearchArgumentFactory.newBuilder();

  private OrcSearch() {}

  /** Whether the statistics of a file's column tell something of a column of the table. */
  static boolean isComparable(DataType wanted, TypeDescription type) {
    TypeDescription.Category found = type.getCategory();
    if (wanted instanceof StringType) {
      return found == TypeDescription.Category.STRING;
    }
    if (wanted instanceof DateType) {
      return found == TypeDescription.Category.DATE;
    }
    if (wanted instanceof DecimalType) {
      return found == TypeDescription.Category.DECIMAL;
    }
    if (wanted instanceof BooleanType) {
      return found == TypeDescription.Category.BOOLEAN;
    }
    if (wanted instanceof FloatType || wanted instanceof DoubleType) {
      return found == TypeDescription.Category.FLOAT || found == TypeDescription.Category.DOUBLE;
    }
    return (wanted instanceof IntegerType || wanted instanceof LongType) && (found == TypeDescription.Category.BYTE
        || found == TypeDescription.Category.SHORT || found == TypeDescription.Category.INT
        || found == TypeDescription.Category.LONG);
  }

  /**
   * All filters that can be told of a file; null if there are none.
   *
   * @param names those of the table's columns to those of the file
   */
  public static SearchArgument of(Filter[] filters, Map names) {
    OrcSearch search = new OrcSearch();
    search.builder.startAnd();
    boolean any = false;
    for (int i = 0; i < filters.length; i++) {
      Filter renamed = PushedFilters.renamed(filters[i], names);
      if (renamed != null && isKnown(renamed)) {
        search.add(renamed);
        any = true;
      }
    }
    return any ? search.builder.end().build() : null;
  }

  private static boolean isKnown(Filter filter) {
    if (filter instanceof And) {
      return isKnown(((And) filter).left()) && isKnown(((And) filter).right());
    }
    if (filter instanceof Or) {
      return isKnown(((Or) filter).left()) && isKnown(((Or) filter).right());
    }
    if (filter instanceof Not) {
      return isKnown(((Not) filter).child());
    }
    if (filter instanceof IsNull || filter instanceof IsNotNull) {
      // The type of what is compared is not at hand, and a wrong one is refused.
      return false;
    }
    if (filter instanceof In) {
      Object[] values = ((In) filter).values();
      boolean known = values.length > 0;
      for (int i = 0; i < values.length; i++) {
        known = known && type(values[i]) != null;
      }
      return known;
    }
    return type(PushedFilters.value(filter)) != null;
  }

  private void add(Filter filter) {
    if (filter instanceof And) {
      builder.startAnd();
      add(((And) filter).left());
      add(((And) filter).right());
      builder.end();
    } else if (filter instanceof Or) {
      builder.startOr();
      add(((Or) filter).left());
      add(((Or) filter).right());
      builder.end();
    } else if (filter instanceof Not) {
      builder.startNot();
      add(((Not) filter).child());
      builder.end();
    } else if (filter instanceof In) {
      Object[] values = ((In) filter).values();
      Object[] literals = new Object[values.length];
      for (int i = 0; i < values.length; i++) {
        literals[i] = literal(values[i]);
      }
      builder.in(((In) filter).attribute(), type(values[0]), literals);
    } else {
      compare(filter, filter.references()[0], PushedFilters.value(filter));
    }
  }

  private void compare(Filter filter, String column, Object value) {
    PredicateLeaf.Type type = type(value);
    Object literal = literal(value);
    if (filter instanceof EqualTo) {
      builder.equals(column, type, literal);
    } else if (filter instanceof EqualNullSafe) {
      builder.nullSafeEquals(column, type, literal);
    } else if (filter instanceof LessThan) {
      builder.lessThan(column, type, literal);
    } else if (filter instanceof LessThanOrEqual) {
      builder.lessThanEquals(column, type, literal);
    } else { // what is greater is not less or equal
      builder.startNot();
      if (filter instanceof GreaterThan) {
        builder.lessThanEquals(column, type, literal);
      } else {
        builder.lessThan(column, type, literal);
      }
      builder.end();
    }
  }

  /** The type by which ORC compares a value; null for one that it is not asked of. */
  private static PredicateLeaf.Type type(Object value) {
    if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte) {
      return PredicateLeaf.Type.LONG;
    }
    if (value instanceof Float || value instanceof Double) {
      return PredicateLeaf.Type.FLOAT;
    }
    if (value instanceof String) {
      return PredicateLeaf.Type.STRING;
    }
    if (value instanceof BigDecimal) {
      return HiveDecimal.create((BigDecimal) value) == null ? null : PredicateLeaf.Type.DECIMAL;
    }
    if (value instanceof Boolean) {
      return PredicateLeaf.Type.BOOLEAN;
    }
    return value instanceof Date || value instanceof LocalDate ? PredicateLeaf.Type.DATE : null;
  }

  private static Object literal(Object value) {
    if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
      return Long.valueOf(((Number) value).longValue());
    }
    if (value instanceof Float) {
      return Double.valueOf(((Float) value).doubleValue());
    }
    if (value instanceof BigDecimal) {
      return new HiveDecimalWritable(HiveDecimal.create((BigDecimal) value));
    }
    return value instanceof LocalDate ? Date.valueOf((LocalDate) value) : value;
  }
}
