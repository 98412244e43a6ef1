package hms_iceberg.bridge.conditions;

import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** Evaluates Spark's filters on partition columns for each partition. */
public final class PartitionFilter {
  private PartitionFilter() {}

  public static boolean[] keep(Seq filters, StructType schema, InternalRow[] partitions) {
    boolean[] kept = new boolean[partitions.length];
    Arrays.fill(kept, true);
    for (Iterator it = CollectionConverters.asJava(filters).iterator(); it.hasNext();) {
      Expression filter = (Expression) ((TreeNode) it.next()).transform(new Bind(schema));
      BasePredicate predicate = Predicate$.MODULE$.createInterpreted(filter);
      for (int i = 0; i < partitions.length; i++) {
        kept[i] = kept[i] && predicate.eval(partitions[i]);
      }
    }
    return kept;
  }

  static final class Bind extends AbstractPartialFunction {
    private final StructType schema;

    Bind(StructType schema) {
      this.schema = schema;
    }

    public boolean isDefinedAt(Object expression) {
      return expression instanceof AttributeReference;
    }

    public Object applyOrElse(Object expression, scala.Function1 otherwise) {
      if (!(expression instanceof AttributeReference)) {
        return otherwise.apply(expression);
      }
      AttributeReference column = (AttributeReference) expression;
      StructField[] fields = schema.fields();
      for (int i = 0; i < fields.length; i++) {
        if (fields[i].name().equals(column.name())) {
          return new BoundReference(i, fields[i].dataType(), fields[i].nullable());
        }
      }
      throw new IllegalStateException(column.name() + " is not a partition column of this scan.");
    }
  }
}
