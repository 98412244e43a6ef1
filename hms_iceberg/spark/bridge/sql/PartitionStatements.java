package hms_iceberg.bridge.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedPartitionSpec;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeColumn;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowPartitions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What SQL says of partitions and statistics. Spark means partitions that a catalog keeps; those of an Iceberg table are
 * in its metadata, so that some statements have an answer there, and for others there is another way.
 */
public final class PartitionStatements extends Rule {
  private static final Set OF_CATALOGS = new HashSet(Arrays.asList(new String[] {
      "AddPartitions", "DropPartitions", "RenamePartitions", "TruncatePartition", "RepairTable", "RecoverPartitions"}));
  /** Whose partition is a map until Spark 4.2; from then on there is a plan of its own. */
  private static final Set DESCRIBE = new HashSet(Arrays.asList(new String[] {
      "DescribeRelation", "DescribeTablePartition"}));

  public TreeNode apply(TreeNode plan) {
    ResolvedTable table = table((LogicalPlan) plan);
    if (table == null) {
      return plan;
    }
    String kind = plan.getClass().getSimpleName();
    if (OF_CATALOGS.contains(kind)) {
      throw refusal(kind, TableName.text(table.identifier()));
    }
    if (plan instanceof ShowPartitions) {
      return new Show(table, partition(((ShowPartitions) plan).pattern()), ((ShowPartitions) plan).output());
    }
    if (plan instanceof AnalyzeTable) {
      return new Analyze(table, Collections.emptyList(), !((AnalyzeTable) plan).noScan());
    }
    if (plan instanceof AnalyzeColumn) {
      Option columns = ((AnalyzeColumn) plan).columnNames();
      return new Analyze(
          table, columns.isEmpty() ? Collections.emptyList() : CollectionConverters.asJava((Seq) columns.get()), true);
    }
    Map partition = DESCRIBE.contains(kind) ? partition(get(plan, "partitionSpec")) : null;
    if (partition == null || partition.isEmpty()) {
      return plan;
    }
    boolean extended = ((Boolean) get(plan, "isExtended")).booleanValue();
    return new Describe(table, partition, extended, ((LogicalPlan) plan).output());
  }

  /** The Iceberg table that a statement is about; null if it is about something else. */
  private static ResolvedTable table(LogicalPlan plan) {
    if (plan.children().size() != 1 || !(plan.children().apply(0) instanceof ResolvedTable)) {
      return null;
    }
    ResolvedTable table = (ResolvedTable) plan.children().apply(0);
    return table.table() instanceof IcebergTable && table.catalog() instanceof IcebergCatalog ? table : null;
  }

  private static RuntimeException refusal(String kind, String table) {
    String remedy = "Iceberg keeps its partitions in the table's metadata, and rows make them. ";
    if ("RepairTable".equals(kind) || "RecoverPartitions".equals(kind)) {
      remedy += "There is nothing to be recovered; for files that the table does not know, call system.add_files.";
    } else if ("AddPartitions".equals(kind)) {
      remedy += "Insert the rows, or call system.add_files for files that are there.";
    } else if ("RenamePartitions".equals(kind)) {
      remedy += "Update the column that the partition is made of.";
    } else {
      remedy += "Delete its rows: delete from " + table + " where …; whole partitions go without reading their files.";
    }
    return Failures.of("UnsupportedError: The Iceberg table " + table + " has no partitions of its own in the catalog. "
        + remedy + " Nothing was changed.", null);
  }

  /** Partition values by name, out of what Spark has in one of its versions: a map, or a specification, or none. */
  private static Map partition(Object given) {
    Object found = given instanceof Option ? (((Option) given).isEmpty() ? null : ((Option) given).get()) : given;
    Object values = found instanceof UnresolvedPartitionSpec ? ((UnresolvedPartitionSpec) found).spec() : found;
    return values == null ? Collections.emptyMap() : CollectionConverters.asJava((scala.collection.Map) values);
  }

  private static Object get(Object plan, String name) {
    try {
      return plan.getClass().getMethod(name, new Class[0]).invoke(plan, new Object[0]);
    } catch (NoSuchMethodException e) {
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + plan.getClass(), e);
    }
  }

  /** What there is of partitions with these values. */
  private static JsonNode partitions(ResolvedTable table, Map partition) {
    ObjectNode question = ((IcebergTable) table.table()).question("partitions");
    question.set("partition", Json.MAPPER.valueToTree(partition));
    return ((IcebergTable) table.table()).planner().ask(question).header().get("partitions");
  }

  static final class Show extends IcebergCommand {
    private final ResolvedTable table;
    private final Map partition;

    Show(ResolvedTable table, Map partition, Seq output) {
      super((IcebergCatalog) table.catalog(), table.identifier(), output);
      this.table = table;
      this.partition = partition;
    }

    public List rows(SparkSession session) {
      List rows = new ArrayList();
      for (Iterator it = partitions(table, partition).elements(); it.hasNext();) {
        rows.add(RowFactory.create(new Object[] {((JsonNode) it.next()).get("path").asText()}));
      }
      return rows;
    }
  }

  public static final class Describe extends IcebergCommand {
    private final ResolvedTable table;
    private final Map partition;
    private final boolean extended;

    public Describe(ResolvedTable table, Map partition, boolean extended, Seq output) {
      super((IcebergCatalog) table.catalog(), table.identifier(), output);
      this.table = table;
      this.partition = partition;
      this.extended = extended;
    }

    public List rows(SparkSession session) {
      JsonNode found = partitions(table, partition);
      if (found.size() != 1) {
        throw Failures.of("InvalidInputError: " + found.size() + " partitions of " + TableName.text(ident) + " have "
            + partition + ", and not one. Give a value for every partition field, as SHOW PARTITIONS has them.", null);
      }
      List rows = new ArrayList();
      StructField[] columns = ((IcebergTable) table.table()).schema().fields();
      for (int i = 0; i < columns.length; i++) {
        Option comment = columns[i].getComment();
        String told = comment.isEmpty() ? null : (String) comment.get();
        rows.add(row(columns[i].name(), columns[i].dataType().simpleString(), told));
      }
      if (extended) {
        detail(Json.at(found, 0), rows);
      }
      return rows;
    }

    private static void detail(JsonNode partition, List rows) {
      rows.add(row("", "", ""));
      rows.add(row("# Detailed Partition Information", "", ""));
      rows.add(row("Partition Values", "[" + partition.get("path").asText().replace("/", ", ") + "]", ""));
      rows.add(row("Partition Spec", partition.get("spec_id").asText(), ""));
      String statistics = partition.get("bytes").asText() + " bytes, " + partition.get("records").asText() + " rows";
      rows.add(row("Partition Statistics", statistics, ""));
      rows.add(row("Data Files", partition.get("files").asText(), ""));
      rows.add(row("Delete Files", partition.get("delete_files").asText(), ""));
      if (!partition.get("changed_ms").isNull()) {
        rows.add(row("Last Changed", new Timestamp(partition.get("changed_ms").asLong()).toString(), ""));
      }
    }

    private static Row row(String name, String type, String comment) {
      return RowFactory.create(new Object[] {name, type, comment});
    }
  }

  /** Writes Iceberg's statistics: of partitions by the metadata, and of columns, whose distinct values are counted. */
  static final class Analyze extends IcebergCommand {
    private final ResolvedTable table;
    private final List columns;
    private final boolean scans;

    /**
     * @param columns whose distinct values are counted; empty for all
     * @param scans whether any are
     */
    Analyze(ResolvedTable table, List columns, boolean scans) {
      super((IcebergCatalog) table.catalog(), table.identifier(), CollectionTools.seq(Collections.emptyList()));
      this.table = table;
      this.columns = columns;
      this.scans = scans;
    }

    public List rows(SparkSession session) {
      if (columns.isEmpty() && ((IcebergTable) table.table()).partitioning().length > 0) {
        call("compute_partition_stats", Json.MAPPER.createObjectNode());
      }
      if (scans) {
        ObjectNode arguments = Json.MAPPER.createObjectNode();
        if (!columns.isEmpty()) {
          arguments.set("columns", Json.MAPPER.valueToTree(columns));
        }
        call("compute_table_stats", arguments);
      }
      return Collections.emptyList();
    }

    private void call(String procedure, ObjectNode arguments) {
      ObjectNode question = Planner.question("call-procedure");
      catalog.source(ident).addTarget(question);
      question.put("procedure", procedure);
      question.set("catalog", catalog.number());
      question.set("current_namespace", Json.MAPPER.valueToTree(ident.namespace()));
      question.set("arguments", arguments.put("table", TableName.text(ident)));
      catalog.source(ident).planner.ask(question);
    }
  }
}
