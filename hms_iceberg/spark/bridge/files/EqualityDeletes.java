package hms_iceberg.bridge.files;

import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/** All equality deletes of one scan that share their key columns and the data files that they may touch. */
public final class EqualityDeletes implements Serializable {
  /** Names this group in the memory of an executor. */
  public final String key;
  /** The key columns, with their ids; a nested key comes as its path of structs. */
  public final StructType columns;
  public final DeleteFile[] files;

  public EqualityDeletes(String key, StructType columns, DeleteFile[] files) {
    this.key = key;
    this.columns = columns;
    this.files = files;
  }
}
