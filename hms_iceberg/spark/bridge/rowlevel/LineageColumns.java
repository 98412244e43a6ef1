package hms_iceberg.bridge.rowlevel;

import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.columns.Structs;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.StructType;

/** Puts the lineage of rows, which comes beside them, after their own columns. */
public final class LineageColumns implements Serializable {
  private static final int NONE = -1;

  private final int rowId;
  private final int lastUpdated;
  private final GenericInternalRow values = new GenericInternalRow(new Object[2]);
  private final JoinedRow joined = new JoinedRow();

  private LineageColumns(int rowId, int lastUpdated) {
    this.rowId = rowId;
    this.lastUpdated = lastUpdated;
  }

  public static LineageColumns of(LogicalWriteInfo info) {
    StructType metadata = info.metadataSchema().isPresent()
        ? (StructType) info.metadataSchema().get() : new StructType();
    return Structs.has(metadata, MetadataColumns.ROW_ID)
        ? new LineageColumns(
            metadata.fieldIndex(MetadataColumns.ROW_ID), metadata.fieldIndex(MetadataColumns.LAST_UPDATED))
        : new LineageColumns(NONE, NONE);
  }

  /** The same for another task. */
  public LineageColumns copy() {
    return new LineageColumns(rowId, lastUpdated);
  }

  /** The same for rows that all change: they keep their ids, and the commit tells when they were changed. */
  LineageColumns ofChanges() {
    return new LineageColumns(rowId, NONE);
  }

  /** The row with its lineage, if the table has any: new rows, without metadata, get theirs from the commit. */
  InternalRow joined(InternalRow metadata, InternalRow row) {
    if (rowId == NONE) {
      return row;
    }
    values.update(0, value(metadata, rowId));
    values.update(1, value(metadata, lastUpdated));
    return joined.apply(row, values);
  }

  private static Object value(InternalRow metadata, int ordinal) {
    return metadata == null || ordinal == NONE || metadata.isNullAt(ordinal) ? null : Long.valueOf(metadata.getLong(ordinal));
  }
}
