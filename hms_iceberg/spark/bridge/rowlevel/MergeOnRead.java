package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.SupportsDelta;

/** Leaves files as they are, and writes which of their rows are deleted beside the new ones. */
final class MergeOnRead extends RowOperation implements SupportsDelta {
  private ObjectNode filter;
  private boolean everything;

  MergeOnRead(IcebergTable table, RowLevelOperation.Command command) {
    super(table, command);
  }

  public NamedReference[] rowId() {
    return references(Arrays.asList(new Object[] {MetadataColumns.FILE, MetadataColumns.POSITION}));
  }

  public NamedReference[] requiredMetadataAttributes() {
    return references(lineage());
  }

  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new MergeOnReadWrite.Builder(this, info);
  }

  /** Called with what each scan of the operation reads; null for all rows. */
  void reads(ObjectNode scanned) {
    if (scanned == null) {
      everything = true;
    } else if (filter == null) {
      filter = scanned;
    } else if (!filter.equals(scanned)) {
      ObjectNode either = Bridge.JSON.createObjectNode();
      either.put("op", "or");
      ArrayNode children = either.putArray("children");
      children.add(filter);
      children.add(scanned);
      filter = either;
    }
  }

  /** Which rows were read: only those can be in conflict with what others commit. Null for all, or none. */
  ObjectNode filter() {
    return everything ? null : filter;
  }
}
