package hms_iceberg.bridge.views;

import hms_iceberg.bridge.sql.IcebergCommand;
import hms_iceberg.bridge.tables.IcebergView;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Pointer;
import hms_iceberg.bridge.wire.TableSource;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTableProperties;
import org.apache.spark.sql.catalyst.util.QuotingUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** DESCRIBE, SHOW CREATE TABLE and SHOW TBLPROPERTIES of a view, in the words of Apache Iceberg. */
final class ShowIcebergView extends IcebergCommand {
  private static final String COMMENT = "comment";
  private static final String CREATED_BY = "create_engine_version";
  private static final String[] RESERVED = {COMMENT, "owner", CREATED_BY, "engine_version"};

  private final LogicalPlan statement;

  ShowIcebergView(IcebergCatalog catalog, Identifier ident, LogicalPlan statement) {
    super(catalog, ident, statement.output());
    this.statement = statement;
  }

  public List rows(SparkSession session) throws Exception {
    TableSource source = catalog.source(ident);
    Pointer pointer = source.pointer();
    if (pointer == null || !pointer.isView) {
      throw new NoSuchViewException(ident); // it was there when the statement was looked at
    }
    IcebergView view = new IcebergView(source, catalog.name(), pointer.location);
    if (statement instanceof DescribeRelation) {
      return described(view, ((DescribeRelation) statement).isExtended());
    }
    List rows = new ArrayList();
    if (statement instanceof ShowCreateTable) {
      rows.add(RowFactory.create(new Object[] {definition(view, session)}));
      return rows;
    }
    Option key = ((ShowTableProperties) statement).propertyKey();
    Map shown = shown(view);
    if (key.isDefined()) {
      Object value = shown.get(key.get());
      String text = "View " + view.shownName() + " does not have property: " + key.get();
      rows.add(RowFactory.create(new Object[] {key.get(), value == null ? text : value}));
      return rows;
    }
    for (Iterator it = shown.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      rows.add(RowFactory.create(new Object[] {entry.getKey(), entry.getValue()}));
    }
    return rows;
  }

  private static Map shown(IcebergView view) {
    Map shown = new TreeMap(view.shownProperties());
    for (int i = 0; i < RESERVED.length; i++) {
      shown.remove(RESERVED[i]);
    }
    return shown;
  }

  private List described(IcebergView view, boolean extended) {
    List rows = new ArrayList();
    StructField[] fields = view.schema().fields();
    for (int i = 0; i < fields.length; i++) {
      Option comment = fields[i].getComment();
      rows.add(row(fields[i].name(), fields[i].dataType().simpleString(), comment.isDefined() ? comment.get() : ""));
    }
    if (extended) {
      Map properties = view.shownProperties();
      String[] place = {catalog.name(), ident.namespace()[0]};
      rows.add(row("", "", ""));
      rows.add(row("# Detailed View Information", "", ""));
      rows.add(row("Comment", text(properties.get(COMMENT)), ""));
      rows.add(row("View Catalog and Namespace", quoted(place), ""));
      rows.add(row("View Query Output Columns", "[" + String.join(", ", view.queryColumns()) + "]", ""));
      rows.add(row("View Properties", "[" + String.join(", ", assignments(shown(view))) + "]", ""));
      rows.add(row("Created By", text(properties.get(CREATED_BY)), ""));
    }
    return rows;
  }

  private static String definition(IcebergView view, SparkSession session) {
    StringBuilder text = new StringBuilder("CREATE VIEW ").append(view.shownName()).append(' ');
    StructField[] fields = view.schema().fields();
    List columns = new ArrayList();
    for (int i = 0; i < fields.length; i++) {
      Option comment = fields[i].getComment();
      columns.add(QuotingUtils$.MODULE$.quoteIfNeeded(fields[i].name())
          + (comment.isDefined() ? " COMMENT " + literal((String) comment.get()) : ""));
    }
    appendLines(text, columns);
    Object comment = view.shownProperties().get(COMMENT);
    if (comment != null) {
      text.append("COMMENT ").append(literal((String) comment)).append('\n');
    }
    List properties = assignments(redacted(shown(view), session));
    if (!properties.isEmpty()) {
      appendLines(text.append("TBLPROPERTIES "), properties);
    }
    return text.append("AS\n").append(view.sql()).append('\n').toString();
  }

  private static Map redacted(Map properties, SparkSession session) {
    return new TreeMap(CollectionConverters.asJava(
        session.sessionState().conf().redactOptions(CollectionTools.map(properties))));
  }

  private static void appendLines(StringBuilder text, List lines) {
    text.append("(\n  ").append(String.join(",\n  ", lines)).append(")\n");
  }

  private static List assignments(Map properties) {
    List assignments = new ArrayList();
    for (Iterator it = properties.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      assignments.add(literal((String) entry.getKey()) + " = " + literal((String) entry.getValue()));
    }
    return assignments;
  }

  private static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  private static String quoted(String[] parts) {
    return QuotingUtils$.MODULE$.quoteIfNeeded(parts[0]) + "." + QuotingUtils$.MODULE$.quoteIfNeeded(parts[1]);
  }

  private static String text(Object value) {
    return value == null ? "" : (String) value;
  }

  private static Row row(Object first, Object second, Object third) {
    return RowFactory.create(new Object[] {first, second, third});
  }
}
