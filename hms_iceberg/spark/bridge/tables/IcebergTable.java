package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.ddl.Alterations;
import hms_iceberg.bridge.rowlevel.MetadataDelete;
import hms_iceberg.bridge.rowlevel.RowOperation;
import hms_iceberg.bridge.scan.TableScanBuilder;
import hms_iceberg.bridge.stream.Streams;
import hms_iceberg.bridge.table.Capabilities;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.TableSource;
import hms_iceberg.bridge.write.TableWriteBuilder;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One snapshot of an Iceberg table, as the analyzer sees it. */
public class IcebergTable extends DescribedTable
    implements SupportsWrite, SupportsMetadataColumns, SupportsRowLevelOperations, SupportsDeleteV2 {
  /** TableCatalog.PROP_TABLE_TYPE, which Spark has from 4.1 on. */
  private static final String TYPE = "table_type";

  /** The question says which version of the table, and what of it, is read. */
  public IcebergTable(TableSource source, ObjectNode question) {
    super(source, question);
  }

  /** A table that is not committed yet, as its transaction would leave it. */
  public IcebergTable(TableSource source, Described described) {
    super(source, described);
  }

  /** The same table. */
  public IcebergTable(IcebergTable other) {
    this(other, other.question);
  }

  private IcebergTable(DescribedTable other, ObjectNode question) {
    super(other, question);
  }

  public DescribedTable with(ObjectNode otherQuestion) {
    return new IcebergTable(this, otherQuestion);
  }

  /** The same if Spark knows no catalog of it, so that no function of one can be used in a write. */
  public IcebergTable withoutCatalog() {
    ObjectNode alone = (ObjectNode) question.deepCopy();
    alone.put("without_catalog", true);
    return new IcebergTable(this, alone);
  }

  public Transform[] partitioning() {
    List transforms = new ArrayList();
    for (Iterator it = description.get("partitioning").elements(); it.hasNext();) {
      JsonNode field = (JsonNode) it.next();
      List arguments = new ArrayList();
      if (field.has("argument")) {
        arguments.add(Expressions.literal(Integer.valueOf(field.get("argument").asInt())));
      }
      arguments.add(Expressions.column(field.get("column").asText()));
      String transform = field.get("transform").asText();
      transforms.add("identity".equals(transform)
          ? Expressions.identity(field.get("column").asText())
          : Expressions.apply(transform, (Expression[]) arguments.toArray(new Expression[0])));
    }
    return (Transform[]) transforms.toArray(new Transform[0]);
  }

  public Map properties() {
    Map properties = new LinkedHashMap();
    for (Iterator it = description.get("properties").fields(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      properties.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    if (CatalogV2Util.TABLE_RESERVED_PROPERTIES().contains(TYPE)) {
      properties.put(TYPE, "EXTERNAL"); // as Java has it, because DROP without PURGE leaves the files
    }
    return properties;
  }

  public Set capabilities() {
    return Capabilities.of(properties());
  }

  /**
   * Types may become wider; rows of a type that may not are cast to the column's. A column that cannot be added is asked
   * for all the same, so that the statement fails and nothing is left out of it.
   */
  public boolean mayChange(TableChange.ColumnChange change) {
    if (!(change instanceof TableChange.UpdateColumnType)) {
      return true;
    }
    TableChange[] changes = {change};
    try {
      return planner().ask(Alterations.alter(question("may-change"), schema, changes)).header().get("possible").asBoolean();
    } catch (Exception e) {
      throw Failures.unchecked(e);
    }
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new TableWriteBuilder(this, info);
  }

  public MetadataColumn[] metadataColumns() {
    StructField[] fields = hiddenSchema.fields();
    MetadataColumn[] columns = new MetadataColumn[fields.length];
    for (int i = 0; i < fields.length; i++) {
      columns[i] = new HiddenColumn(fields[i].name(), withoutIds(fields[i].dataType()));
    }
    return columns;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new TableScanBuilder(this, new Streams(this, options), null);
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return new RowOperation.Builder(this, info);
  }

  public boolean canDeleteWhere(Predicate[] predicates) {
    return MetadataDelete.isPossible(this, predicates);
  }

  public void deleteWhere(Predicate[] predicates) {
    MetadataDelete.commit(this, predicates);
  }

  static final class HiddenColumn implements MetadataColumn {
    private final String name;
    private final DataType type;

    HiddenColumn(String name, DataType type) {
      this.name = name;
      this.type = type;
    }

    public String name() {
      return name;
    }

    public DataType dataType() {
      return type;
    }

    /** A row is found again by these two, which it always has. */
    public boolean isNullable() {
      return !MetadataColumns.FILE.equals(name) && !MetadataColumns.POSITION.equals(name);
    }

    /** A row that is changed keeps its id, and says nothing of when it was changed. */
    public String metadataInJSON() {
      return Generation.preserved(!MetadataColumns.LAST_UPDATED.equals(name));
    }
  }


}
