package hms_iceberg.bridge.columns;

/** Keys of the metadata of a field of a schema that is read. */
public final class FieldMetadata {
  public static final String ID = "parquet.field.id";
  public static final String KIND = "iceberg.type";
  public static final String DEFAULT = "iceberg.initial-default";

  private FieldMetadata() {}
}
