package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.conditions.PredicateText;
import hms_iceberg.bridge.read.ArrowPartition;
import hms_iceberg.bridge.wire.Planner;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** A scan of a system table. Conditions on namespace and table choose what is looked at; Spark tests the rows. */
public final class SystemScan
    implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, Scan, Batch {
  private final Planner planner;
  private final JsonNode catalog;
  private final String kind;
  private StructType read;
  private Predicate[] conditions = new Predicate[0];

  public SystemScan(Planner planner, JsonNode catalog, String kind, StructType schema) {
    this.planner = planner;
    this.catalog = catalog;
    this.kind = kind;
    this.read = schema;
  }

  public void pruneColumns(StructType required) {
    read = required;
  }

  public Predicate[] pushPredicates(Predicate[] predicates) {
    conditions = predicates;
    return predicates;
  }

  public Predicate[] pushedPredicates() {
    return conditions;
  }

  public Scan build() {
    return this;
  }

  public StructType readSchema() {
    return read;
  }

  public String description() {
    return "iceberg system." + kind + " " + Arrays.toString(conditions);
  }

  /** Known without planning, so that EXPLAIN looks at no table. */
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Scan.ColumnarSupportMode.SUPPORTED;
  }

  public Batch toBatch() {
    return this;
  }

  public InputPartition[] planInputPartitions() {
    List partitions = ArrowParts.of(planner.ask(question()).header());
    return (InputPartition[]) partitions.toArray(new InputPartition[0]);
  }

  private ObjectNode question() {
    ObjectNode question = Planner.question("system-rows");
    question.set("catalog", catalog);
    question.put("kind", kind);
    question.set("filter", PredicateText.of(conditions));
    ArrayNode columns = question.putArray("columns");
    String[] names = read.fieldNames();
    for (int i = 0; i < names.length; i++) {
      columns.add(names[i]);
    }
    return question;
  }

  public PartitionReaderFactory createReaderFactory() {
    return new ArrowPartition.Readers();
  }

  public boolean equals(Object other) {
    return other instanceof SystemScan && question().equals(((SystemScan) other).question());
  }

  public int hashCode() {
    return kind.hashCode();
  }
}
