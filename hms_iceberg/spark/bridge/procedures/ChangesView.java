package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.scan.WorkerFiles;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Extension;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A temporary view of rows that one Python worker streams, when the view is queried. */
final class ChangesView {
  private ChangesView() {}

  public static void create(SparkSession session, JsonNode view, byte[] command) {
    StructType known = UnsupportedTypes.parse(view.get("schema"));
    UnsupportedTypes.refuse(view.get("name").asText(), known);
    StructType schema = DescribedTable.withoutIds(known);
    List output = new ArrayList();
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      output.add(WorkerFiles.attribute(fields[i]));
    }
    LogicalPlan once = ((Dataset) session.range(0L, 1L, 1L, 1)).logicalPlan(); // one row, so that it is read once
    LogicalPlan plan = WorkerFiles.inWorkers(
        "read_iceberg_changes", Extension.activePlanner().worker(), command, output, once);
    Dataset$.MODULE$.ofRows(session, plan).createOrReplaceTempView(view.get("name").asText());
  }
}
