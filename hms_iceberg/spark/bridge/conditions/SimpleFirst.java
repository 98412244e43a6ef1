package hms_iceberg.bridge.conditions;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A filter that first compares columns with values, and looks for the longest text of a pattern before it matches the
 * pattern. Spark evaluates conditions as they are written, and a pattern or a function of a row that a comparison or a
 * search leaves out costs many times as much as these.
 */
public final class SimpleFirst {
  private SimpleFirst() {}

  /** The same rows; conditions of one kind keep their order. */
  public static Filter of(Filter filter) {
    List all = split(filter.condition());
    List ordered = of(all);
    if (ordered.equals(all)) {
      return filter;
    }
    Expression condition = (Expression) ordered.get(0);
    for (int i = 1; i < ordered.size(); i++) {
      condition = new And(condition, (Expression) ordered.get(i));
    }
    return new Filter(condition, filter.child());
  }

  /** The same of conditions that must all hold. */
  public static List of(List conditions) {
    List simple = new ArrayList();
    List others = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      Expression condition = (Expression) conditions.get(i);
      if (!condition.deterministic()) {
        return conditions;
      }
      (isSimple(condition) ? simple : others).add(condition);
    }
    for (int i = 0; i < others.size(); i++) {
      simple.add(searched((Expression) others.get(i)));
    }
    return simple;
  }

  /** The conditions that must all hold. */
  public static List split(Expression condition) {
    List all = new ArrayList();
    split(condition, all);
    return all;
  }

  private static void split(Expression condition, List all) {
    if (condition instanceof And) {
      split(((And) condition).left(), all);
      split(((And) condition).right(), all);
    } else {
      all.add(condition);
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

  /** A pattern that no simpler condition stands for, after a search for a text that all that match contain. */
  private static Expression searched(Expression condition) {
    if (!(condition instanceof Like)) {
      return condition;
    }
    Like like = (Like) condition;
    boolean isPlain = like.left() instanceof Attribute && like.right() instanceof Literal
        && like.left().dataType().equals(DataTypes.StringType); // of no collation
    Object pattern = isPlain ? ((Literal) like.right()).value() : null;
    String text = pattern == null ? "" : longestText(pattern.toString(), like.escapeChar());
    return text.isEmpty() ? condition : new And(
        new Contains(like.left(), new Literal(UTF8String.fromString(text), DataTypes.StringType)), condition);
  }

  /** The longest text between two wildcards; empty if there is none, or the pattern is not valid. */
  private static String longestText(String pattern, char escape) {
    String longest = "";
    StringBuilder text = new StringBuilder();
    for (int i = 0; i <= pattern.length(); i++) {
      char letter = i < pattern.length() ? pattern.charAt(i) : '%';
      if (i < pattern.length() && letter == escape) {
        char escaped = ++i < pattern.length() ? pattern.charAt(i) : '\0';
        if (escaped != '%' && escaped != '_' && escaped != escape) {
          return "";
        }
        text.append(escaped);
      } else if (letter == '%' || letter == '_') {
        longest = text.length() > longest.length() ? text.toString() : longest;
        text.setLength(0);
      } else {
        text.append(letter);
      }
    }
    return longest;
  }
}
