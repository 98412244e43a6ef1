package hms_iceberg.bridge.plan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.Json;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** What is streamed is known to be possible before the query starts. */
public final class CheckStreams extends Rule {
  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperators(new Check());
  }

  /** Refuses the options of a stream that cannot be. */
  static void check(IcebergTable table, Map options) {
    ObjectNode question = table.question("stream-check");
    question.set("options", Json.MAPPER.valueToTree(new HashMap(options)));
    table.planner().ask(question);
  }

  static final class Check extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      return plan instanceof StreamingRelationV2 && ((StreamingRelationV2) plan).table() instanceof IcebergTable;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      StreamingRelationV2 relation = (StreamingRelationV2) plan;
      check((IcebergTable) relation.table(), relation.extraOptions());
      return plan;
    }
  }
}
