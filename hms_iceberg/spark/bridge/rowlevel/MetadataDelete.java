package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Deletes that remove whole files, which metadata alone tells, so that no row is read. */
final class MetadataDelete {
  private MetadataDelete() {}

  /** Whether each file holds only rows that match, or none. */
  static boolean isPossible(IcebergTable table, Predicate[] predicates) {
    return Extension.activePlanner().ask(question("can-delete", table, predicates)).header().get("possible").asBoolean();
  }

  static void commit(IcebergTable table, Predicate[] predicates) {
    Extension.activePlanner().ask(question("delete-where", table, predicates));
  }

  private static ObjectNode question(String call, IcebergTable table, Predicate[] predicates) {
    ObjectNode question = TableWriteBuilder.question(call, table);
    question.set("filter", PredicateText.of(predicates));
    return question;
  }
}
