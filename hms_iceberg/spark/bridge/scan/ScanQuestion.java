package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.conditions.FilterText;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.Planner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.types.StructType;

/** The question for the files of a scan. */
public final class ScanQuestion {
  private ScanQuestion() {}

  /**
   * For a scan that is only read.
   *
   * @param used the columns that the query uses
   * @param filter what it tests rows by, or null
   */
  public static ObjectNode of(DescribedTable table, StructType used, ObjectNode filter) {
    return of(
        table, filter, Structs.has(used, MetadataColumns.DELETED) && table.hides(MetadataColumns.DELETED),
        Structs.has(used, MetadataColumns.PARTITION));
  }

  /**
   * The same.
   *
   * @param marksDeleted whether the query gets deleted rows too, and uses the column that tells them
   * @param partition whether it uses the column _partition
   */
  public static ObjectNode of(DescribedTable table, ObjectNode filter, boolean marksDeleted, boolean partition) {
    ObjectNode question = table.question("plan");
    question.put("deleted_column", marksDeleted);
    if (filter != null) {
      question.set("filter", filter);
    }
    if (partition) {
      question.put("partition_column", true);
    }
    return question;
  }

  /** Asks for what is known of the columns as well. */
  static void addStatistics(ObjectNode question, StructType columns) {
    ArrayNode names = question.putArray("statistics");
    for (int i = 0; i < columns.fields().length; i++) {
      names.add(columns.fields()[i].name());
    }
  }

  /** Asks for the files of a statement that changes rows, if it is one. */
  public static void addChange(ObjectNode question, RowChange change) {
    if (change != null) {
      question.put("whole_files", change.replacesFiles());
      question.put("all_deletes", true);
    }
  }

  /** What conditions say of columns, all of which must hold; null if there are none. */
  public static ObjectNode filter(List conditions, List columns) {
    Expression all = null;
    for (int i = 0; i < conditions.size(); i++) {
      Expression condition = (Expression) conditions.get(i);
      if (!SubqueryExpression.hasSubquery(condition)) {
        all = all == null ? condition : new And(all, condition);
      }
    }
    return all == null ? null : FilterText.of(all, columns);
  }

  /** The attributes that conditions name. */
  static List attributes(List conditions) {
    List attributes = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      for (scala.collection.Iterator it = ((Expression) conditions.get(i)).references().iterator(); it.hasNext();) {
        attributes.add(it.next());
      }
    }
    return attributes;
  }

  /** Whether a condition says the same of all rows that have the same values in some columns. */
  static boolean isOn(Expression condition, List columns) {
    return condition.deterministic() && !condition.references().isEmpty() && columns.containsAll(names(condition))
        && isEvaluable(condition);
  }

  /** Whether it can be asked here: functions in Python run where rows are. */
  private static boolean isEvaluable(Expression condition) {
    boolean evaluable = condition instanceof Attribute || !(condition instanceof Unevaluable);
    for (scala.collection.Iterator it = condition.children().iterator(); evaluable && it.hasNext();) {
      evaluable = isEvaluable((Expression) it.next());
    }
    return evaluable;
  }

  /** Those of some conditions. */
  static List on(List conditions, List columns) {
    List found = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      if (isOn((Expression) conditions.get(i), columns)) {
        found.add(conditions.get(i));
      }
    }
    return found;
  }

  /** The names of the attributes of a condition. */
  static List names(Expression condition) {
    List names = new ArrayList();
    List attributes = attributes(Collections.singletonList(condition));
    for (int i = 0; i < attributes.size(); i++) {
      names.add(((Attribute) attributes.get(i)).name());
    }
    return names;
  }

  /** The files, which are asked for once. */
  public static ScanFiles ask(DescribedTable table, ObjectNode asked) {
    long started = System.nanoTime();
    ScanFiles files = (ScanFiles) table.planner().askOnce(asked, new Planned());
    return files.plannedIn(System.nanoTime() - started);
  }

  /**
   * The files, or what metadata knows of aggregates over all of their rows. If it does not know them, the files are those
   * that will be asked for next, without aggregates.
   */
  public static ScanFiles ask(DescribedTable table, ObjectNode asked, ArrayNode aggregates) {
    ObjectNode further = asked.deepCopy();
    further.set("aggregates", aggregates);
    ScanFiles files = ask(table, further);
    if (files.aggregates() == null) {
      table.planner().remember(asked, files);
    }
    return files;
  }

  static final class Planned implements Planner.AnswerReader {
    public Object read(Answer plan) {
      return new ScanFiles(plan);
    }
  }
}
