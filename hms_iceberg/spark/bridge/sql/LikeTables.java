package hms_iceberg.bridge.sql;

import hms_iceberg.bridge.catalog.NamedCatalog;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.QuotingUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * CREATE TABLE ... LIKE, where the new table is an Iceberg table: the CREATE TABLE that says the same. Spark's own would
 * make a row of the metastore that nothing can read, and before 4.3 does so for the session catalog alone.
 */
public final class LikeTables extends Rule {
  private static final String[] DEFINED = {"format-version", "sort-order", "identifier-fields"};

  private final SparkSession session;

  public LikeTables(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    if (plan instanceof CreateTableLikeCommand) {
      CreateTableLikeCommand command = (CreateTableLikeCommand) plan;
      return ofSessionCatalog(command);
    }
    return "CreateTableLike".equals(plan.getClass().getSimpleName()) ? ofAnyCatalog((LogicalPlan) plan) : plan;
  }

  private LogicalPlan ofSessionCatalog(CreateTableLikeCommand command) {
    if (session.sessionState().catalog().isTempView(command.sourceTable())) {
      return command;
    }
    Table source = null;
    CatalogPlugin catalog = session.sessionState().catalogManager().v2SessionCatalog();
    try {
      source = catalog instanceof IcebergCatalog
          ? ((TableCatalog) catalog).loadTable(TableName.of(parts(command.sourceTable()))) : null;
    } catch (Exception e) {
      return command; // Spark tells what is wrong with the source
    }
    if (source == null || !isIceberg(command.provider(), source, false)) {
      refuseOther(source);
      return command;
    }
    return create(
        parts(command.targetTable()), source, command.fileFormat().locationUri(), command.properties(),
        command.ifNotExists());
  }

  private String[] parts(TableIdentifier name) {
    String database = name.database().isDefined()
        ? (String) name.database().get() : session.sessionState().catalog().getCurrentDatabase();
    return new String[] {database, name.table()};
  }

  /** A plan that Spark has since 4.3. */
  private LogicalPlan ofAnyCatalog(LogicalPlan plan) {
    Object name = get(plan, "name");
    if (!(name instanceof ResolvedIdentifier) || !(get(plan, "source") instanceof ResolvedTable)) {
      return plan;
    }
    CatalogPlugin catalog = ((ResolvedIdentifier) name).catalog();
    Table source = ((ResolvedTable) get(plan, "source")).table();
    if (!(catalog instanceof IcebergCatalog)) {
      return plan;
    }
    if (!isIceberg((Option) get(plan, "provider"), source, catalog instanceof NamedCatalog)) {
      refuseOther(source);
      return plan;
    }
    Identifier ident = ((ResolvedIdentifier) name).identifier();
    List parts = new ArrayList();
    parts.add(catalog.name());
    for (int i = 0; i < ident.namespace().length; i++) {
      parts.add(ident.namespace()[i]);
    }
    parts.add(ident.name());
    return create(
        (String[]) parts.toArray(new String[0]), source, (Option) get(plan, "location"),
        (scala.collection.immutable.Map) get(plan, "properties"), ((Boolean) get(plan, "ifNotExists")).booleanValue());
  }

  private static Object get(LogicalPlan plan, String part) {
    try {
      Method method = plan.getClass().getMethod(part, new Class[0]);
      return method.invoke(plan, new Object[0]);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + plan.getClass(), e);
    }
  }

  private static boolean isIceberg(Option provider, Table source, boolean always) {
    return always || (provider.isDefined()
        ? "iceberg".equalsIgnoreCase((String) provider.get()) : source instanceof IcebergTable);
  }

  private static void refuseOther(Table source) {
    if (source instanceof IcebergTable) {
      throw Failures.of("UnsupportedError: CREATE TABLE LIKE of the Iceberg table " + source.name() + " makes Iceberg"
          + " tables. Nothing was changed. Use CREATE TABLE ... AS SELECT ... LIMIT 0 for a table of another format.", null);
    }
  }

  private LogicalPlan create(
      String[] name, Table source, Option location, scala.collection.immutable.Map given, boolean ifNotExists) {
    StringBuilder text = new StringBuilder("CREATE TABLE ").append(ifNotExists ? "IF NOT EXISTS " : "");
    for (int i = 0; i < name.length; i++) {
      text.append(i == 0 ? "" : ".").append(QuotingUtils$.MODULE$.quoteIdentifier(name[i]));
    }
    text.append(" (").append(source.schema().toDDL()).append(") USING iceberg");
    Transform[] partitions = source.partitioning();
    for (int i = 0; i < partitions.length; i++) {
      text.append(i == 0 ? " PARTITIONED BY (" : ", ").append(partitions[i].describe());
    }
    text.append(partitions.length == 0 ? "" : ")");
    if (location.isDefined()) {
      text.append(" LOCATION ").append(literal(String.valueOf(location.get())));
    }
    Map properties = properties(source, given);
    String between = " TBLPROPERTIES (";
    for (Iterator it = properties.entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      text.append(between).append(literal((String) entry.getKey())).append(" = ")
          .append(literal((String) entry.getValue()));
      between = ", ";
    }
    try {
      return session.sessionState().sqlParser().parsePlan(text.append(properties.isEmpty() ? "" : ")").toString());
    } catch (Exception e) { // ParseException, of which 4.0 declares nothing
      throw Failures.unchecked(e);
    }
  }

  /** What defines the table, under what the statement says itself; its other properties are its own. */
  private static Map properties(Table source, scala.collection.immutable.Map given) {
    Map properties = new LinkedHashMap();
    for (int i = 0; i < DEFINED.length && source instanceof IcebergTable; i++) {
      if (source.properties().containsKey(DEFINED[i])) {
        properties.put(DEFINED[i], source.properties().get(DEFINED[i]));
      }
    }
    properties.putAll(CollectionConverters.asJava(given));
    return properties;
  }

  private static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }
}
