package hms_iceberg.bridge;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A filter that first compares columns with values. Spark evaluates conditions as they are written, and a pattern or a
 * function of a row that a comparison leaves out costs many times as much as the comparison.
 */
final class SimpleFirst {
  private SimpleFirst() {}

  /** The same rows; conditions of one kind keep their order. */
  static Filter of(Filter filter) {
    List simple = new ArrayList();
    List others = new ArrayList();
    split(filter.condition(), simple, others);
    if (simple.isEmpty() || others.isEmpty() || !filter.condition().deterministic()) {
      return filter;
    }
    simple.addAll(others);
    Expression condition = (Expression) simple.get(0);
    for (int i = 1; i < simple.size(); i++) {
      condition = new And(condition, (Expression) simple.get(i));
    }
    return new Filter(condition, filter.child());
  }

  private static void split(Expression condition, List simple, List others) {
    if (condition instanceof And) {
      split(((And) condition).left(), simple, others);
      split(((And) condition).right(), simple, others);
    } else {
      (isSimple(condition) ? simple : others).add(condition);
    }
  }

  private static boolean isSimple(Expression condition) {
    if (condition instanceof Not) {
      return isSimple(((Not) condition).child());
    }
    boolean compares = condition instanceof BinaryComparison || condition instanceof In || condition instanceof InSet
        || condition instanceof IsNull || condition instanceof IsNotNull;
    List operands = CollectionConverters.asJava(condition.children());
    for (int i = 0; compares && i < operands.size(); i++) {
      compares = operands.get(i) instanceof Attribute || operands.get(i) instanceof Literal;
    }
    return compares;
  }
}
