package hms_iceberg.bridge;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** spark.read.format("iceberg"). */
public class IcebergSource implements TableProvider, CreatableRelationProvider {
  private Table table;

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    table = loaded(options);
    return table.schema();
  }

  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
    return new Transform[0];
  }

  /** The table whose schema was inferred: it must not be another version of it. */
  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return table != null ? table : loaded(new CaseInsensitiveStringMap(properties));
  }

  public boolean supportsExternalMetadata() {
    return false;
  }

  private static Table loaded(CaseInsensitiveStringMap options) {
    String path = options.get("path");
    if (path == null) {
      throw Bridge.failure("InvalidInputError: spark.read.format(\"iceberg\") needs a table: load(\"db.t\"), or"
          + " load(\"path/to/table\").", null);
    }
    return TableReads.load(path, new HashMap(options));
  }

  /** What DataFrameWriter.save ends in. */
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters, Dataset data) {
    throw MetastoreRows.notWritable(String.valueOf(parameters.getOrElse("path", new IcebergFormat.No())), "save");
  }
}
