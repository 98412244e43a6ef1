package hms_iceberg.bridge.parquet;

import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.Type;

/** Where Parquet keeps the elements of lists and the entries of maps, old layouts included. */
final class Layout {
  private Layout() {}

  /** The element of a list, by the rules for backward compatibility of the Parquet format. */
  public static Type element(Type list) {
    if (list.isRepetition(Type.Repetition.REPEATED)) {
      return list;
    }
    Type repeated = list.asGroupType().getType(0);
    if (repeated.isPrimitive()) {
      return repeated;
    }
    GroupType group = repeated.asGroupType();
    boolean isElement = group.getFieldCount() > 1
        || group.getType(0).isRepetition(Type.Repetition.REPEATED)
        || "array".equals(group.getName())
        || (list.getName() + "_tuple").equals(group.getName());
    return isElement ? repeated : group.getType(0);
  }

  public static GroupType entry(Type map) {
    return map.asGroupType().getType(0).asGroupType();
  }
}
