package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.scan.ScanQuestion;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.SparkVersions;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * A query that takes values from variants reads these in the place of the variants. Spark finds out which they are, but
 * for a DataSource V2 it would read all other columns too; it is asked about a relation of its own with the same columns.
 */
final class VariantParts {
  private VariantParts() {}

  /** The plan of a scan in which columns of variants are structs of the values that it uses. */
  static LogicalPlan of(Scan scan, LogicalPlan plan, SparkSession session) {
    if (!usesVariants(scan) || isReadAsWhole(scan)) {
      return plan;
    }
    StructType none = new StructType();
    HadoopFsRelation files = new HadoopFsRelation(
        null, none, scan.relation.schema(), Option.empty(), new ParquetFileFormat(),
        (scala.collection.immutable.Map) Map$.MODULE$.empty(), session);
    LogicalRelation relation = LogicalRelation$.MODULE$.apply((BaseRelation) files, false);
    LogicalPlan asked = scan.over((LogicalPlan) SparkVersions.with(relation, 1, scan.relation.output()));
    return (LogicalPlan) Generation.variantParts(asked).transform(new Back(scan));
  }

  private static boolean usesVariants(Scan scan) {
    for (Iterator it = scan.columns().iterator(); it.hasNext();) {
      if (((Attribute) it.next()).dataType().existsRecursively(new IsVariant())) {
        return true;
      }
    }
    return false;
  }

  static final class IsVariant extends AbstractFunction1 {
    public Object apply(Object type) {
      return Boolean.valueOf(type instanceof VariantType);
    }
  }

  /** So are variants of files that are replaced, and of those that Python reads. */
  private static boolean isReadAsWhole(Scan scan) {
    return scan.operation() != null && scan.operation().replacesFiles()
        || ScanQuestion.ask(scan.table(), scan.question()).workerFiles() != null;
  }

  /** Puts the table in the place of the relation that stood for it. */
  static final class Back extends AbstractPartialFunction {
    private final Scan scan;

    Back(Scan scan) {
      this.scan = scan;
    }

    public boolean isDefinedAt(Object plan) {
      return plan instanceof LogicalRelation;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      return isDefinedAt(plan)
          ? SparkVersions.with(scan.relation, 1, ((LogicalRelation) plan).output()) : otherwise.apply(plan);
    }
  }
}
