package hms_iceberg.bridge.write;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.wire.Json;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** How a write wants its rows: spread over tasks, and in order within each. */
final class Layouts {
  private Layouts() {}

  /** {"clustering": [term]} or {"ranges": [order]} or neither. */
  static Distribution distribution(JsonNode asked) {
    if (asked.get("clustering").size() > 0) {
      JsonNode terms = asked.get("clustering");
      Expression[] expressions = new Expression[terms.size()];
      for (int i = 0; i < expressions.length; i++) {
        expressions[i] = term(Json.at(terms, i));
      }
      return Distributions.clustered(expressions);
    }
    JsonNode ranges = asked.get("ranges");
    return ranges.size() > 0 ? Distributions.ordered(orders(ranges)) : Distributions.unspecified();
  }

  static SortOrder[] ordering(JsonNode asked) {
    return orders(asked.get("ordering"));
  }

  private static SortOrder[] orders(JsonNode orders) {
    SortOrder[] all = new SortOrder[orders.size()];
    for (int i = 0; i < all.length; i++) {
      JsonNode order = Json.at(orders, i);
      all[i] = Expressions.sort(
          term(order),
          order.get("descending").asBoolean() ? SortDirection.DESCENDING : SortDirection.ASCENDING,
          order.get("nulls_first").asBoolean() ? NullOrdering.NULLS_FIRST : NullOrdering.NULLS_LAST);
    }
    return all;
  }

  /** {"transform": "bucket", "width": 16, "column": "a.`b`"}. */
  private static Expression term(JsonNode term) {
    String transform = term.get("transform").asText();
    Expression column = Expressions.column(term.get("column").asText());
    if ("identity".equals(transform)) {
      return column;
    }
    Expression[] arguments = term.get("width").isNull()
        ? new Expression[] {column}
        : new Expression[] {Expressions.literal(Integer.valueOf(term.get("width").asInt())), column};
    return Expressions.apply(transform, arguments);
  }
}
