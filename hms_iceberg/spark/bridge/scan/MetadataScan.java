package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.read.ArrowPartition;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A scan of a metadata table. Python writes the columns that are used as Arrow; tasks carry pieces of it. */
public final class MetadataScan implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownTopN,
    SupportsPushDownLimit, SupportsPushDownAggregates, Scan, Batch {
  private static final String METRICS = "readable_metrics";
  private static final DataType STRING = StringType$.MODULE$;

  private final Planner planner;
  private final String name;
  private final ObjectNode described;
  private final StructType known;
  private final StructType full;
  private StructType read;
  private ArrayNode order = Json.MAPPER.createArrayNode();
  private ArrayNode aggregates = Json.MAPPER.createArrayNode();
  private boolean hasAverage;
  private int limit = -1;

  public MetadataScan(Planner planner, String name, ObjectNode described, StructType known) {
    this.planner = planner;
    this.name = name;
    this.described = described;
    this.known = known;
    this.full = DescribedTable.withoutIds(known);
    this.read = full;
  }

  /** Whole columns, of which Spark takes the fields that it needs, but for the metrics: there are six of each column. */
  public void pruneColumns(StructType required) {
    StructField[] fields = new StructField[required.fields().length];
    for (int i = 0; i < fields.length; i++) {
      StructField asked = required.fields()[i];
      fields[i] = asked.name().equals(METRICS) ? asked : full.apply(asked.name());
    }
    read = new StructType(fields);
  }

  /** The first rows by columns whose order is the same in Python. */
  public boolean pushTopN(SortOrder[] orders, int rows) {
    ArrayNode keys = Json.MAPPER.createArrayNode();
    for (int i = 0; i < orders.length; i++) {
      String[] name = orders[i].expression() instanceof NamedReference
          ? ((NamedReference) orders[i].expression()).fieldNames() : new String[0];
      if (name.length != 1 || !isOrdered(full.apply(name[0]).dataType())) {
        return false;
      }
      ObjectNode key = keys.addObject();
      key.put("column", name[0]);
      key.put("descending", orders[i].direction() == SortDirection.DESCENDING);
      key.put("nulls_last", orders[i].nullOrdering() == NullOrdering.NULLS_LAST);
    }
    order = keys;
    limit = rows;
    return true;
  }

  private static boolean isOrdered(DataType type) {
    return type == STRING || type == IntegerType$.MODULE$ || type == LongType$.MODULE$;
  }

  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  /** Each part has its own first rows, of which Spark takes the first ones. */
  public boolean isPartiallyPushed() {
    return true;
  }

  /** Spark would make a sum and a count of an average, and a sum of longs may be too large where an average is not. */
  public boolean supportCompletePushDown(Aggregation aggregation) {
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      hasAverage |= function instanceof Avg;
    }
    return false;
  }

  /** Aggregates of all rows, which Python answers by one row, as if the table had no more; Spark makes the last step. */
  public boolean pushAggregation(Aggregation aggregation) {
    AggregateFunc[] functions = aggregation.aggregateExpressions();
    if (functions.length == 0 || aggregation.groupByExpressions().length > 0) { // none are asked for by DISTINCT
      return false;
    }
    ArrayNode asked = Json.MAPPER.createArrayNode();
    StructField[] fields = new StructField[functions.length];
    for (int i = 0; i < functions.length; i++) {
      Answered answered = Answered.by(functions[i], full);
      if (answered == null || hasAverage) {
        return false;
      }
      asked.addObject().put("op", answered.op).put("column", answered.column);
      fields[i] = new StructField(answered.op + "_" + i, answered.type, true, Metadata.empty());
    }
    aggregates = asked;
    read = new StructType(fields);
    return true;
  }

  /** An aggregate that Python answers as Spark does. */
  private static final class Answered {
    private final String op;
    private final String column;
    private final DataType type;

    private Answered(String op, String column, DataType type) {
      this.op = op;
      this.column = column;
      this.type = type;
    }

    static Answered by(AggregateFunc function, StructType full) {
      if (function instanceof CountStar) {
        return new Answered("count", null, LongType$.MODULE$);
      }
      if (function instanceof Count && !((Count) function).isDistinct()) {
        String column = column(((Count) function).column());
        return column == null ? null : new Answered("count", column, LongType$.MODULE$);
      }
      if (function instanceof Sum && !((Sum) function).isDistinct()) {
        String column = column(((Sum) function).column());
        boolean isSummed = column != null && isOrdered(type(full, column)) && type(full, column) != STRING;
        return isSummed ? new Answered("sum", column, LongType$.MODULE$) : null;
      }
      if (function instanceof Min || function instanceof Max) {
        boolean isMin = function instanceof Min;
        String column = column(isMin ? ((Min) function).column() : ((Max) function).column());
        boolean isCompared = column != null && isOrdered(type(full, column));
        return isCompared ? new Answered(isMin ? "min" : "max", column, type(full, column)) : null;
      }
      return null;
    }

    private static DataType type(StructType full, String column) {
      return full.apply(column).dataType();
    }

    private static String column(Expression expression) {
      String[] name = expression instanceof NamedReference ? ((NamedReference) expression).fieldNames() : new String[0];
      return name.length == 1 ? name[0] : null;
    }
  }

  public Scan build() {
    return this;
  }

  public StructType readSchema() {
    return read;
  }

  public String description() {
    return "iceberg " + name;
  }

  /** Known without planning, so that EXPLAIN reads no manifests. */
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Scan.ColumnarSupportMode.SUPPORTED;
  }

  public Batch toBatch() {
    return this;
  }

  public InputPartition[] planInputPartitions() {
    ObjectNode question = (ObjectNode) described.deepCopy();
    question.put("call", "inspect-rows");
    ArrayNode columns = question.putArray("columns");
    String[] names = aggregates.isEmpty() ? read.fieldNames() : new String[0];
    for (int i = 0; i < names.length; i++) {
      columns.add(names[i]);
      UnsupportedTypes.refuse(name, new StructType(new StructField[] {known.apply(names[i])}));
      if (names[i].equals(METRICS)) {
        putMetrics(question.putObject("metrics"), (StructType) read.fields()[i].dataType());
      }
    }
    question.set("order", order);
    question.set("aggregates", aggregates);
    if (limit >= 0) {
      question.put("limit", limit);
    }
    List partitions = ArrowParts.of(planner.ask(question).header());
    return (InputPartition[]) partitions.toArray(new InputPartition[0]);
  }

  private static void putMetrics(ObjectNode metrics, StructType asked) {
    for (StructField column : asked.fields()) {
      ArrayNode parts = metrics.putArray(column.name());
      for (String part : ((StructType) column.dataType()).fieldNames()) {
        parts.add(part);
      }
    }
  }

  public PartitionReaderFactory createReaderFactory() {
    return new ArrowPartition.Readers();
  }

  public boolean equals(Object other) {
    return other instanceof MetadataScan && described.equals(((MetadataScan) other).described)
        && read.equals(((MetadataScan) other).read) && limit == ((MetadataScan) other).limit
        && order.equals(((MetadataScan) other).order) && aggregates.equals(((MetadataScan) other).aggregates);
  }

  public int hashCode() {
    return described.hashCode();
  }
}
