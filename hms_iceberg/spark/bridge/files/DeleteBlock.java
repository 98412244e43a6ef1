package hms_iceberg.bridge.files;

import java.io.Serializable;

/** Some position delete files of a plan that follow one another. */
public final class DeleteBlock implements Serializable {
  public final DeleteFile[] files;
  /** Names the block in the memory of an executor, which puts it together; null if a file is looked up by itself. */
  public final String key;

  public DeleteBlock(DeleteFile[] files, String key) {
    this.files = files;
    this.key = key;
  }
}
