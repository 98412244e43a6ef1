package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.wire.Json;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** The columns of rows that files have: those of type void are never stored. */
public final class StoredColumns {
  private StoredColumns() {}

  /** A view of a row with these columns only; null if all are stored. */
  public static ProjectingInternalRow of(StructType fileSchema, int[] ordinals) {
    if (ordinals == null) {
      return null;
    }
    List list = new ArrayList();
    for (int i = 0; i < ordinals.length; i++) {
      list.add(Integer.valueOf(ordinals[i]));
    }
    return new ProjectingInternalRow(
        fileSchema, CollectionConverters.asScala(list).toIndexedSeq());
  }

  public static int[] ordinals(JsonNode stored) {
    if (stored.isNull()) {
      return null;
    }
    int[] ordinals = new int[stored.size()];
    for (int i = 0; i < ordinals.length; i++) {
      ordinals[i] = Json.at(stored, i).asInt();
    }
    return ordinals;
  }
}
