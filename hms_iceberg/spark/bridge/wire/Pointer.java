package hms_iceberg.bridge.wire;

/** What a name of a metastore points at: a version of a table, or the metadata file of a view. */
public final class Pointer {
  /** The name of the version: its metadata file, and if another one may take its name, what tells the two apart. */
  public final String location;
  public final boolean isView;

  public Pointer(String location, boolean isView) {
    this.location = location;
    this.isView = isView;
  }

  /** The location if it is of a table, else null. */
  public static String ofTable(Pointer pointer) {
    return pointer == null || pointer.isView ? null : pointer.location;
  }
}
