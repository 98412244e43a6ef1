package hms_iceberg.bridge;

/** What a name of a metastore points at: the metadata file of a table or of a view. */
final class Pointer {
  final String location;
  final boolean isView;

  Pointer(String location, boolean isView) {
    this.location = location;
    this.isView = isView;
  }

  /** The location if it is of a table, else null. */
  static String ofTable(Pointer pointer) {
    return pointer == null || pointer.isView ? null : pointer.location;
  }
}
