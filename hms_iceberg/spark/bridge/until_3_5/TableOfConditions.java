package hms_iceberg.bridge;

import java.util.Collections;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationInfoImpl;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table whose rows are changed by conditions on metadata columns: Spark 3.5 hands no options to the operation. */
final class TableOfConditions extends IcebergTable {
  private final String named;

  TableOfConditions(IcebergTable table, String named) {
    super(table);
    this.named = named;
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    CaseInsensitiveStringMap options =
        new CaseInsensitiveStringMap(Collections.singletonMap(NamedMetadata.OPTION, named));
    return super.newRowLevelOperationBuilder(new RowLevelOperationInfoImpl(info.command(), options));
  }
}
