package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.wire.Values;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What the optimizer knows of a scan. */
final class ScanStatistics implements Statistics {
  private final long size;
  private final long rows;
  private final Map columns = new HashMap();

  /** The columns that are known are told by their names; a negative number of rows is not known. */
  ScanStatistics(long size, long rows, JsonNode known, StructType read) {
    this.size = size;
    this.rows = rows;
    StructField[] fields = read.fields();
    for (int i = 0; i < fields.length; i++) {
      if (known.has(fields[i].name())) {
        columns.put(
            Expressions.column("`" + fields[i].name().replace("`", "``") + "`"),
            new OfColumn(fields[i].dataType(), known.get(fields[i].name())));
      }
    }
  }

  public OptionalLong sizeInBytes() {
    return OptionalLong.of(size);
  }

  public OptionalLong numRows() {
    return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
  }

  public Map columnStats() {
    return columns;
  }

  static final class OfColumn implements ColumnStatistics {
    private final DataType type;
    private final JsonNode known;

    OfColumn(DataType type, JsonNode known) {
      this.type = type;
      this.known = known;
    }

    public OptionalLong distinctCount() {
      return number("distinct");
    }

    public OptionalLong nullCount() {
      return number("nulls");
    }

    public Optional min() {
      return Optional.ofNullable(Values.of(type, known.get("min")));
    }

    public Optional max() {
      return Optional.ofNullable(Values.of(type, known.get("max")));
    }

    private OptionalLong number(String name) {
      return known.has(name) ? OptionalLong.of(known.get(name).asLong()) : OptionalLong.empty();
    }
  }
}
