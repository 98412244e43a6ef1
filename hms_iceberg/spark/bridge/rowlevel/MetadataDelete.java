package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.conditions.PredicateText;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.write.TableWriteBuilder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Deletes that remove whole files, which metadata alone tells, so that no row is read. */
public final class MetadataDelete {
  private MetadataDelete() {}

  /** Whether each file holds only rows that match, or none. */
  public static boolean isPossible(DescribedTable table, Predicate[] predicates) {
    return Extension.activePlanner().ask(question("can-delete", table, predicates)).header().get("possible").asBoolean();
  }

  public static void commit(DescribedTable table, Predicate[] predicates) {
    Extension.activePlanner().ask(question("delete-where", table, predicates));
  }

  private static ObjectNode question(String call, DescribedTable table, Predicate[] predicates) {
    ObjectNode question = TableWriteBuilder.question(call, table);
    question.set("filter", PredicateText.of(predicates));
    return question;
  }
}
