package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import java.util.Iterator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** The files that the view lists whose name the argument `file_list_view` of a procedure holds. */
final class FileListArgument {
  private FileListArgument() {}

  /** Each file's path, and the time of its last change in milliseconds. */
  static JsonNode resolve(SparkSession session, String view) {
    Dataset files = (Dataset) session.table(view);
    require(files, "file_path", DataTypes.StringType, "string");
    require(files, "last_modified", DataTypes.TimestampType, "timestamp");
    ArrayNode listed = Json.MAPPER.createArrayNode();
    Dataset columns = (Dataset) files.selectExpr(new String[] {"file_path", "unix_millis(last_modified)"});
    for (Iterator it = columns.toLocalIterator(); it.hasNext();) {
      Row row = (Row) it.next();
      if (!row.isNullAt(0)) {
        ArrayNode file = listed.addArray();
        file.add(row.getString(0));
        file.add(row.isNullAt(1) ? Long.MAX_VALUE : row.getLong(1)); // of no known age: never old enough
      }
    }
    return listed;
  }

  private static void require(Dataset files, String column, DataType type, String name) {
    DataType found = files.schema().apply(column).dataType();
    if (!found.equals(type)) {
      throw Failures.of("InvalidInputError: Invalid " + column + " column: " + found.simpleString() + " is not a "
          + name, null);
    }
  }
}
