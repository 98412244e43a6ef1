package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import scala.Option;

/** A temporary view of what commits did to the rows of a table. */
final class ChangesView {
  private ChangesView() {}

  public static void create(SparkSession session, IcebergCatalog catalog, Identifier table, JsonNode view) {
    String[] parts = (String[]) Arrays.copyOf(table.namespace(), table.namespace().length + 1);
    parts[parts.length - 1] = table.name();
    Map options = (Map) Json.MAPPER.convertValue(view.get("options"), HashMap.class);
    Table changes = catalog.load(new TableName(parts, "changes"), null, null, options);
    Dataset$.MODULE$
        .ofRows(session, DataSourceV2Relation$.MODULE$.create(changes, Option.empty(), Option.empty()))
        .createOrReplaceTempView(view.get("name").asText());
  }
}
