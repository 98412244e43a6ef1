package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Json;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;

/** Leaves files as they are, and writes which of their rows are deleted beside the new ones. */
public final class MergeOnRead extends RowOperation implements SupportsDelta {
  /** What the task says that deletes a row; null if it may. */
  final String refusal;
  private ObjectNode filter;
  private boolean everything;

  MergeOnRead(DescribedTable table, RowLevelOperationInfo info, String refusal) {
    super(table, info);
    this.refusal = refusal;
  }

  public NamedReference[] rowId() {
    return references(Arrays.asList(new Object[] {MetadataColumns.FILE, MetadataColumns.POSITION}));
  }

  public NamedReference[] requiredMetadataAttributes() {
    List columns = metadata();
    columns.remove(MetadataColumns.FILE); // they come as the row's id
    columns.remove(MetadataColumns.POSITION);
    return references(columns);
  }

  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new MergeOnReadWrite.Builder(this, info);
  }

  public ObjectNode planFilter(ObjectNode scanned) {
    if (scanned == null) {
      everything = true;
    } else if (filter == null) {
      filter = scanned;
    } else if (!filter.equals(scanned)) {
      ObjectNode either = Json.MAPPER.createObjectNode();
      either.put("op", "or");
      ArrayNode children = either.putArray("children");
      children.add(filter);
      children.add(scanned);
      filter = either;
    }
    return scanned;
  }

  public boolean replacesFiles() {
    return false;
  }

  public void planned(List paths) {}

  public Set filesToRead() {
    return null;
  }

  /** Which rows were read: only those can be in conflict with what others commit. Null for all, or none. */
  public ObjectNode filter() {
    return everything ? null : filter;
  }
}
