package hms_iceberg.bridge.plan;

import hms_iceberg.bridge.rowlevel.RowOperation;
import hms_iceberg.bridge.tables.IcebergTable;
import java.util.Collections;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationInfoImpl;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table whose rows are changed by conditions on metadata columns: it tells its operation which ones. */
public final class TableOfConditions extends IcebergTable {
  private final String named;

  public TableOfConditions(IcebergTable table, String named) {
    super(table);
    this.named = named;
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    CaseInsensitiveStringMap options =
        new CaseInsensitiveStringMap(Collections.singletonMap(RowOperation.METADATA_COLUMNS, named));
    return super.newRowLevelOperationBuilder(new RowLevelOperationInfoImpl(info.command(), options));
  }

  public boolean equals(Object other) {
    return super.equals(other) && named.equals(((TableOfConditions) other).named);
  }

  public int hashCode() {
    return super.hashCode();
  }
}
