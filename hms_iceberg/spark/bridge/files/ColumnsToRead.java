package hms_iceberg.bridge.files;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** What is wanted of a file. */
public final class ColumnsToRead {
  public static final Filter[] NO_FILTERS = new Filter[0];
  private static final StructType NONE = new StructType();

  /** The columns that a file can hold. */
  public final StructType stored;
  public final boolean positions;
  /** What rows are tested by afterwards: what certainly does not match may be left out. */
  public final Filter[] filters;
  /** See VariantGroups; null for none. */
  public final String variantTests;
  /** The table's, for files without field ids; null if it has none. */
  public final JsonNode nameMapping;
  /** Values, in Spark's internal form, of columns that the file lacks: field id to value. */
  public final Map constants;
  public final StructType partitionSchema;
  public final InternalRow partition;

  public ColumnsToRead(
      StructType stored, boolean positions, Filter[] filters, String variantTests, JsonNode nameMapping, Map constants,
      StructType partitionSchema, InternalRow partition) {
    this.stored = stored;
    this.positions = positions;
    this.filters = filters;
    this.variantTests = variantTests;
    this.nameMapping = nameMapping;
    this.constants = constants;
    this.partitionSchema = partitionSchema;
    this.partition = partition;
  }

  /** Those of a delete file, which always has ids. */
  public static ColumnsToRead ofDeletes(StructType columns, Filter[] filters) {
    return new ColumnsToRead(
        columns, false, filters, null, null, Collections.emptyMap(), NONE, InternalRow.empty());
  }
}
