package hms_iceberg.bridge.files;

import java.io.Closeable;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The batches of one data or delete file, or of one split of it. Their vectors are the same for the whole file. */
public abstract class FileBatches implements Closeable {
  /** Reads the next batch into the vectors; false if there is none. */
  public abstract boolean next() throws IOException;

  /** How many rows the batch has. */
  public abstract int rows();

  /** The columns that a file can hold, in the order of a schema whose columns are all among those to read. */
  public abstract ColumnVector[] columns(StructType wanted) throws IOException;

  /** The positions of the batch's rows in the file; asked for only if the columns to read say so. */
  public abstract ColumnVector positions();

  /** The columns of the partition that Spark makes. */
  public abstract ColumnVector[] partition();

  /** The error for a file whose columns nothing tells apart. */
  public static IOException withoutIds(FilePart part) {
    return new IOException("The " + part.kind + " " + part.path + " has no field ids and its table has no name mapping,"
        + " so its columns cannot be told apart. Set the table property schema.name-mapping.default.");
  }

  /**
   * The error for a file that a reader could not decode; a failure of its storage, which says nothing of the file, and an
   * error of ours stay what they are.
   *
   * @param decoder the package of the format's own code
   */
  public static IOException failed(FilePart part, String decoder, Exception cause) {
    StackTraceElement[] stack = cause.getStackTrace();
    boolean isOurs = cause instanceof IOException && !(cause instanceof EOFException)
        && (stack.length == 0 || !stack[0].getClassName().startsWith(decoder));
    if (isOurs) {
      return cause instanceof FileNotFoundException ? FileFailures.missing(part.kind, part.path) : (IOException) cause;
    }
    return new IOException("CorruptDataFileError: Cannot read the " + part.kind + " " + part.path + " as " + part.format
        + ": " + (cause.getMessage() == null ? "it ends too early" : cause.getMessage())
        + ". The file is damaged; restore it from a copy.", cause);
  }

  /** The error for a column of which the file holds another type. */
  public static IOException mismatch(FilePart part, String column, String wanted, String found) {
    return new IOException("TypeMismatchError: Cannot read column '" + column + "' of " + part.path + ": the table's type is "
        + wanted + ", the file holds " + found + ", and values of that type cannot become " + wanted
        + " without loss. Rewrite the file.");
  }
}
