package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A temporary view of rows that one Python worker streams, when the view is queried. */
final class ChangesView {
  private ChangesView() {}

  static void create(SparkSession session, JsonNode view, byte[] command) {
    StructType schema = IcebergTable.withoutIds(UnsupportedTypes.parse(view.get("schema")));
    List output = new ArrayList();
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      output.add(WorkerFiles.attribute(fields[i]));
    }
    LogicalPlan once = ((Dataset) session.range(0L, 1L, 1L, 1)).logicalPlan(); // one row, so that it is read once
    SimplePythonFunction worker = Extension.active().planner.worker();
    SimplePythonFunction function = new SimplePythonFunction(
        command, worker.envVars(), worker.pythonIncludes(), worker.pythonExec(),
        worker.pythonVer(), worker.broadcastVars(), worker.accumulator());
    PythonUDF udf = new PythonUDF(
        "read_iceberg_changes", function, schema, once.output(), WorkerFiles.MAP_ARROW, true,
        NamedExpression$.MODULE$.newExprId());
    LogicalPlan plan = new MapInArrow((Expression) udf, CollectionTools.seq(output), once, false, Option.empty());
    Dataset$.MODULE$.ofRows(session, plan).createOrReplaceTempView(view.get("name").asText());
  }
}
