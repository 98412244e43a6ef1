package hms_iceberg.bridge.files;

import hms_iceberg.bridge.wire.SentOnce;
import java.io.Serializable;

/** The files of a block that apply to one data file: from the first to the one before the end. */
public final class DeleteRun implements Serializable {
  public final int first;
  public final int end;
  private final SentOnce block;

  public DeleteRun(SentOnce block, int first, int end) {
    this.block = block;
    this.first = first;
    this.end = end;
  }

  public DeleteBlock block() {
    return (DeleteBlock) block.value();
  }
}
