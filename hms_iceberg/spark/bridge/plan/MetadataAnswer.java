package hms_iceberg.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Values;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** select count(*), min(a), max(b): metadata knows how many rows files have, and between what their values lie. */
final class MetadataAnswer {
  private MetadataAnswer() {}

  /** Whether a plan aggregates all rows that are below it. */
  static boolean isWhole(LogicalPlan plan) {
    return plan instanceof Aggregate && ((Aggregate) plan).groupingExpressions().isEmpty();
  }

  /**
   * What is asked for, as JSON: [{"op": "max", "column": "b"}]; null if metadata alone cannot answer.
   *
   * @param names the table's columns by the ids of attributes
   */
  static ArrayNode asked(Aggregate plan, Map names) {
    Replace probe = new Replace(names, null);
    List replaced = replace(plan, probe);
    for (int i = 0; i < replaced.size(); i++) {
      if (!((Expression) replaced.get(i)).references().isEmpty()) {
        return null;
      }
    }
    return probe.other || probe.asked.isEmpty() ? null : probe.asked;
  }

  /** The plan of the answers, which reads nothing. */
  public static LogicalPlan constant(Aggregate plan, Map names, JsonNode answers) {
    List replaced = replace(plan, new Replace(names, answers));
    return new Project(CollectionTools.seq(replaced), new OneRowRelation());
  }

  private static List replace(Aggregate plan, Replace replace) {
    List replaced = new ArrayList();
    for (Iterator it = CollectionConverters.asJava(plan.aggregateExpressions()).iterator(); it.hasNext();) {
      replaced.add(((TreeNode) it.next()).transform(replace));
    }
    return replaced;
  }

  /** Puts the answers in the place of the aggregates; without answers, it only finds out what they are. */
  static final class Replace extends AbstractPartialFunction {
    final ArrayNode asked = Json.MAPPER.createArrayNode();
    boolean other;
    private final Map names;
    private final JsonNode answers;

    Replace(Map names, JsonNode answers) {
      this.names = names;
      this.answers = answers;
    }

    public boolean isDefinedAt(Object expression) {
      return expression instanceof AggregateExpression;
    }

    public Object applyOrElse(Object expression, scala.Function1 otherwise) {
      if (!(expression instanceof AggregateExpression)) {
        return otherwise.apply(expression);
      }
      AggregateExpression aggregate = (AggregateExpression) expression;
      ObjectNode question = question(aggregate);
      if (question == null) {
        other = true;
        return expression;
      }
      asked.add(question);
      JsonNode answer = answers == null ? null : Json.at(answers, asked.size() - 1);
      return new Literal(Values.of(aggregate.dataType(), answer), aggregate.dataType());
    }

    private ObjectNode question(AggregateExpression aggregate) {
      Expression function = aggregate.aggregateFunction();
      List arguments = CollectionConverters.asJava(((TreeNode) function).children());
      if (aggregate.isDistinct() || aggregate.filter().isDefined() || arguments.size() != 1) {
        return null;
      }
      String op = function instanceof Count ? "count" : function instanceof Min ? "min"
          : function instanceof Max ? "max" : null;
      ObjectNode question = Json.MAPPER.createObjectNode();
      question.put("op", op);
      if (op != null && arguments.get(0) instanceof AttributeReference) {
        Object name = names.get(((AttributeReference) arguments.get(0)).exprId());
        question.put("column", (String) name);
        return name == null ? null : question;
      }
      boolean rows = "count".equals(op) && arguments.get(0) instanceof Literal
          && ((Literal) arguments.get(0)).value() != null;
      return rows ? question : null;
    }
  }
}
