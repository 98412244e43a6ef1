package hms_iceberg.bridge;

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
final class PushedFilters {
  private PushedFilters() {}

  static FilterPredicate of(
      Filter[] filters, Map names, MessageType schema, ReadSettings settings, RebaseSpec rebase) {
    ParquetFilters parquet = SparkVersions.parquetFilters(
        schema, settings.pushDates, settings.pushTimestamps, settings.pushDecimals, settings.pushStrings,
        settings.inThreshold, rebase);
    FilterPredicate all = null;
    for (int i = 0; i < filters.length; i++) {
      Filter renamed = renamed(filters[i], names, true);
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

  /** Null where it cannot be said of this file; only where it may be weakened does one side of an AND suffice. */
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
      return child == null ? null : new Not(child);
    }
    return leaf(filter, names);
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
