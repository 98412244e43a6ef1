package hms_iceberg.bridge.files;

import hms_iceberg.bridge.wire.SparkVersions;
import java.util.Map;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFilters;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringContains;
import org.apache.spark.sql.sources.StringEndsWith;
import org.apache.spark.sql.sources.StringStartsWith;
import scala.Option;

/**
 * Spark's filters under the names that the columns have in one file, for skipping row groups and pages. A column
 * that was renamed since, or whose old name belongs to another column now, must not be mistaken for it.
 */
public final class PushedFilters {
  private PushedFilters() {}

  public static FilterPredicate of(
      Filter[] filters, Map names, MessageType schema, ReadSettings settings, RebaseSpec rebase) {
    // Days and times of an old calendar become others when they are read, some of them the same; Spark's own
    // comparison of their statistics loses rows.
    boolean asTheyStand = !"LEGACY".equals(rebase.mode().toString());
    ParquetFilters parquet = SparkVersions.parquetFilters(
        schema, settings.pushDates && asTheyStand, settings.pushTimestamps && asTheyStand, settings.pushDecimals, settings.pushStrings,
        settings.inThreshold, rebase);
    FilterPredicate all = null;
    for (int i = 0; i < filters.length; i++) {
      Filter renamed = renamed(filters[i], names);
      if (renamed == null) {
        continue;
      }
      Option one = parquet.createFilter(renamed);
      if (one.isDefined()) {
        FilterPredicate predicate = (FilterPredicate) one.get();
        all = all == null ? predicate : FilterApi.and(all, predicate);
      }
    }
    return all;
  }

  /** A filter in a file's own names, of which statistics tell the truth, or a weaker one; null if there is none. */
  public static Filter renamed(Filter filter, Map names) {
    return renamed(filter, names, true);
  }

  /** Null if it cannot be said of this file; only if it may be weakened does one side of an AND suffice. */
  private static Filter renamed(Filter filter, Map names, boolean mayWeaken) {
    if (filter instanceof And) {
      Filter left = renamed(((And) filter).left(), names, mayWeaken);
      Filter right = renamed(((And) filter).right(), names, mayWeaken);
      if (left != null && right != null) {
        return new And(left, right);
      }
      return !mayWeaken ? null : left != null ? left : right;
    }
    if (filter instanceof Or) {
      Filter left = renamed(((Or) filter).left(), names, mayWeaken);
      Filter right = renamed(((Or) filter).right(), names, mayWeaken);
      return left == null || right == null ? null : new Or(left, right);
    }
    if (filter instanceof Not) {
      Filter child = renamed(((Not) filter).child(), names, false);
      return child == null || compares(child, false) ? null : new Not(child);
    }
    boolean matchesNan = filter instanceof GreaterThan || filter instanceof GreaterThanOrEqual;
    return compares(filter, !matchesNan) ? null : leaf(filter, names);
  }

  /**
   * Whether a filter compares numbers that may be NaN. Statistics leave NaN out, which to Spark equals itself and is
   * greater than all others, so that they must not decide if NaN may match.
   *
   * @param onlyWithNan only comparisons with NaN itself
   */
  private static boolean compares(Filter filter, boolean onlyWithNan) {
    if (filter instanceof And || filter instanceof Or) {
      Filter left = filter instanceof And ? ((And) filter).left() : ((Or) filter).left();
      Filter right = filter instanceof And ? ((And) filter).right() : ((Or) filter).right();
      return compares(left, onlyWithNan) || compares(right, onlyWithNan);
    }
    if (filter instanceof Not) {
      return compares(((Not) filter).child(), onlyWithNan);
    }
    Object[] values = filter instanceof In ? ((In) filter).values() : new Object[] {value(filter)};
    for (int i = 0; i < values.length; i++) {
      boolean isNumber = values[i] instanceof Float || values[i] instanceof Double;
      if (isNumber && (!onlyWithNan || Double.isNaN(((Number) values[i]).doubleValue()))) {
        return true;
      }
    }
    return false;
  }

  /** What a column is compared with; null if it is compared with nothing. */
  public static Object value(Filter filter) {
    if (filter instanceof EqualTo) {
      return ((EqualTo) filter).value();
    }
    if (filter instanceof EqualNullSafe) {
      return ((EqualNullSafe) filter).value();
    }
    if (filter instanceof GreaterThan) {
      return ((GreaterThan) filter).value();
    }
    if (filter instanceof GreaterThanOrEqual) {
      return ((GreaterThanOrEqual) filter).value();
    }
    if (filter instanceof LessThan) {
      return ((LessThan) filter).value();
    }
    return filter instanceof LessThanOrEqual ? ((LessThanOrEqual) filter).value() : null;
  }

  private static Filter leaf(Filter filter, Map names) {
    String[] references = filter.references();
    String name = references.length == 1 ? (String) names.get(references[0]) : null;
    if (name == null) {
      return null;
    }
    if (filter instanceof EqualTo) {
      return new EqualTo(name, ((EqualTo) filter).value());
    }
    if (filter instanceof EqualNullSafe) {
      return new EqualNullSafe(name, ((EqualNullSafe) filter).value());
    }
    if (filter instanceof LessThan) {
      return new LessThan(name, ((LessThan) filter).value());
    }
    if (filter instanceof LessThanOrEqual) {
      return new LessThanOrEqual(name, ((LessThanOrEqual) filter).value());
    }
    if (filter instanceof GreaterThan) {
      return new GreaterThan(name, ((GreaterThan) filter).value());
    }
    if (filter instanceof GreaterThanOrEqual) {
      return new GreaterThanOrEqual(name, ((GreaterThanOrEqual) filter).value());
    }
    if (filter instanceof In) {
      return new In(name, ((In) filter).values());
    }
    if (filter instanceof IsNull) {
      return new IsNull(name);
    }
    if (filter instanceof IsNotNull) {
      return new IsNotNull(name);
    }
    if (filter instanceof StringStartsWith) {
      return new StringStartsWith(name, ((StringStartsWith) filter).value());
    }
    if (filter instanceof StringEndsWith) {
      return new StringEndsWith(name, ((StringEndsWith) filter).value());
    }
    if (filter instanceof StringContains) {
      return new StringContains(name, ((StringContains) filter).value());
    }
    return null;
  }
}
