package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.scan.RowChange;
import hms_iceberg.bridge.scan.TableScanBuilder;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.write.TableWrite;
import hms_iceberg.bridge.write.TableWriteBuilder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A DELETE, UPDATE or MERGE of rows of one version of a table. */
public abstract class RowOperation implements RowLevelOperation, RowChange {
  /** The option by which a statement tells its operation what metadata columns its conditions name. */
  public static final String METADATA_COLUMNS = "hms_iceberg.metadata-columns";

  public final DescribedTable table;
  private final RowLevelOperation.Command command;
  /** The metadata columns that its conditions name. */
  private final List named;

  RowOperation(DescribedTable table, RowLevelOperationInfo info) {
    this.table = table;
    this.command = info.command();
    this.named = named(info.options());
  }

  private static List named(CaseInsensitiveStringMap options) {
    String names = options.get(METADATA_COLUMNS);
    return names == null ? new ArrayList() : new ArrayList(Arrays.asList(names.split(",")));
  }

  public RowLevelOperation.Command command() {
    return command;
  }

  public String description() {
    return "Iceberg " + commandName() + " of " + table.name();
  }

  /** As the table's properties have it: delete, update or merge. */
  String commandName() {
    return command.toString().toLowerCase(Locale.ROOT);
  }

  /** Which rows it reads, for conflicts with what others commit; null for all. */
  public abstract ObjectNode filter();

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new TableScanBuilder(table, null, this);
  }

  /** The lineage that rows keep when they are written anew, if the table has any. */
  List lineage() {
    List columns = new ArrayList();
    if (Integer.parseInt((String) table.properties().get("format-version")) >= 3) {
      columns.add(MetadataColumns.ROW_ID);
      columns.add(MetadataColumns.LAST_UPDATED);
    }
    return columns;
  }

  /** What Spark has to read besides the columns of the table: lineage, and what conditions name. */
  public final List metadata() {
    List columns = lineage();
    columns.addAll(named);
    return columns;
  }

  public static NamedReference[] references(List names) {
    NamedReference[] references = new NamedReference[names.size()];
    for (int i = 0; i < references.length; i++) {
      references[i] = Expressions.column((String) names.get(i));
    }
    return references;
  }

  /** The write of the rows, for which Python is asked now. */
  public final TableWrite write(LogicalWriteInfo info) {
    if (Structs.has(info.schema(), MetadataColumns.DELETED) && table.hides(MetadataColumns.DELETED)) {
      throw Failures.of("UnsupportedError: cannot " + commandName() + " rows of the table " + table.name() + ": Spark"
          + " takes metadata columns that a condition names for columns to write, if a literal of the statement needs a"
          + " cast. Give literals the types of their columns (_pos = 0L).", null);
    }
    ObjectNode question = TableWriteBuilder.question(table, info);
    question.put("call", "begin-rows");
    question.put("kind", this instanceof CopyOnWrite ? "replace-rows" : "change-rows");
    question.put("command", commandName());
    question.put("lineage", !lineage().isEmpty());
    return new TableWrite((SparkSession) SparkSession.active(), table, question);
  }

  public static final class Builder implements RowLevelOperationBuilder {
    private final DescribedTable table;
    private final RowLevelOperationInfo info;

    public Builder(DescribedTable table, RowLevelOperationInfo info) {
      this.table = table;
      this.info = info;
    }

    public RowLevelOperation build() {
      JsonNode change = table.rowChange(info.command().toString().toLowerCase(Locale.ROOT));
      if (change.has("error")) {
        throw Failures.of(change.get("error").asText(), null);
      }
      if ("copy-on-write".equals(change.get("mode").asText()) && Generation.copies(table.properties())) {
        return new CopyOnWrite(table, info);
      }
      // As in Apache Iceberg, what matches no row is possible in tables without row deletes, too.
      JsonNode refusal = change.get("refusal");
      return new MergeOnRead(table, info, refusal.isNull() ? null : refusal.asText());
    }
  }
}
