package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.functions.Functions;
import hms_iceberg.bridge.scan.SystemScan;
import hms_iceberg.bridge.table.DescribedTable;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Planner;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** All tables of a catalog, told of as rows: system.tables, system.snapshots and so on. Python has the list of them. */
public final class SystemTable implements SupportsRead {
  private final Planner planner;
  private final IcebergCatalog catalog;
  private final String kind;
  private final StructType schema;

  private SystemTable(Planner planner, IcebergCatalog catalog, String kind, StructType schema) {
    this.planner = planner;
    this.catalog = catalog;
    this.kind = kind;
    this.schema = schema;
  }

  /** That of a name of which the catalog has no table; null if there is none. */
  public static Table find(IcebergCatalog catalog, Identifier ident) {
    if (!Functions.isSystem(ident.namespace())) {
      return null;
    }
    Planner planner = catalog.source(ident).planner;
    Map known = (Map) planner.askOnce(Planner.question("system-tables"), new Known());
    String kind = ident.name().toLowerCase(Locale.ROOT);
    StructType schema = (StructType) known.get(kind);
    return schema == null ? null : new SystemTable(planner, catalog, kind, schema);
  }

  public String name() {
    return catalog.name() + ".system." + kind;
  }

  public StructType schema() {
    return schema;
  }

  public Map properties() {
    return Collections.singletonMap("provider", "iceberg");
  }

  public Set capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new SystemScan(planner, catalog.number(), kind, schema);
  }

  public boolean equals(Object other) {
    return other instanceof SystemTable && name().equals(((SystemTable) other).name());
  }

  public int hashCode() {
    return name().hashCode();
  }

  public String toString() {
    return "Iceberg " + name();
  }

  /** Their columns, by name. */
  public static final class Known implements Planner.AnswerReader {
    public Object read(Answer answer) {
      Map schemas = new HashMap();
      for (Iterator it = answer.header().get("schemas").fields(); it.hasNext();) {
        Map.Entry each = (Map.Entry) it.next();
        schemas.put(each.getKey(), DescribedTable.withoutIds(UnsupportedTypes.parse((JsonNode) each.getValue())));
      }
      return schemas;
    }
  }
}
