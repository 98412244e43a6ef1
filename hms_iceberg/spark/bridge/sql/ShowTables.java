package hms_iceberg.bridge.sql;

import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.command.ShowTablesCommand;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * SHOW TABLE EXTENDED in the session catalog. Spark tells what the metastore's row says of a table, and takes an Iceberg
 * table for one of Hive: dbt, which reads the provider here, then drops it and makes it anew.
 */
public final class ShowTables extends IcebergCommand {
  private static final Pattern ICEBERG = Pattern.compile("(?im)^Table Properties: \\[.*\\btable_type=iceberg\\b");
  private static final String[] OF_HIVE = {
    "Serde Library: ", "InputFormat: ", "OutputFormat: ", "Storage Properties: ", "Partition Provider: "
  };

  private final ShowTablesCommand statement;

  private ShowTables(IcebergCatalog catalog, ShowTablesCommand statement) {
    super(catalog, new TableName(new String[0], "*"), statement.output());
    this.statement = statement;
  }

  public List rows(SparkSession session) {
    List rows = new ArrayList();
    for (Iterator it = CollectionConverters.asJava((Seq) statement.run(session)).iterator(); it.hasNext();) {
      Row row = (Row) it.next();
      rows.add(RowFactory.create(new Object[] {row.get(0), row.get(1), row.get(2), told(row.getString(3))}));
    }
    return rows;
  }

  /** What is said of a table, with Iceberg as its provider if it is one of Iceberg's. */
  public static String told(String information) {
    if (!ICEBERG.matcher(information).find()) {
      return information;
    }
    StringBuilder told = new StringBuilder();
    String[] lines = information.split("\n", -1);
    for (int i = 0; i < lines.length; i++) {
      boolean kept = true;
      for (int j = 0; j < OF_HIVE.length; j++) {
        kept = kept && !lines[i].startsWith(OF_HIVE[j]);
      }
      if (kept) {
        told.append(lines[i].startsWith("Provider: ") ? "Provider: iceberg" : lines[i]);
        told.append(i + 1 < lines.length ? "\n" : "");
      }
    }
    return told.toString();
  }

  public static final class Extended extends Rule {
    private final SparkSession session;

    public Extended(SparkSession session) {
      this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
      if (plan instanceof ShowTablesCommand && ((ShowTablesCommand) plan).isExtended()) {
        CatalogPlugin catalog = session.sessionState().catalogManager().v2SessionCatalog();
        if (catalog instanceof IcebergCatalog) {
          return new ShowTables((IcebergCatalog) catalog, (ShowTablesCommand) plan);
        }
      }
      return (LogicalPlan) plan;
    }
  }
}
