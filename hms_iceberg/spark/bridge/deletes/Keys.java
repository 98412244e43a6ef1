package hms_iceberg.bridge.deletes;

import hms_iceberg.bridge.wire.CollectionTools;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Equality keys as bytes that can be compared: null equals null, and NaN equals NaN. */
public final class Keys {
  private Keys() {}

  /** From a row of the key columns to one flat row of all their leaves. */
  public static UnsafeProjection projection(StructType columns) {
    List leaves = new ArrayList();
    StructField[] fields = columns.fields();
    for (int i = 0; i < fields.length; i++) {
      leaves(new BoundReference(i, fields[i].dataType(), true), leaves);
    }
    return UnsafeProjection.create(CollectionTools.seq(leaves));
  }

  private static void leaves(Expression expression, List leaves) {
    if (!(expression.dataType() instanceof StructType)) {
      leaves.add(expression);
      return;
    }
    int count = ((StructType) expression.dataType()).fields().length;
    for (int i = 0; i < count; i++) {
      leaves(new GetStructField(expression, i, Option.empty()), leaves);
    }
  }
}
