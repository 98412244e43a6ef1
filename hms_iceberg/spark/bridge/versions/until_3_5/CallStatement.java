package hms_iceberg.bridge.sql;

import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.procedures.CatalogProcedure;
import hms_iceberg.bridge.scan.WorkerFiles;
import hms_iceberg.bridge.until_3_5.CollectionConverters;
import hms_iceberg.bridge.until_3_5.ProcedureCatalog;
import hms_iceberg.bridge.until_3_5.ProcedureParameter;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAlias;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.FunctionSignature;
import org.apache.spark.sql.catalyst.plans.logical.InputParameter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NamedParametersSupport$;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.Seq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Nil$;

/** CALL, which Spark 3.5 does not know: the procedure is found when the statement is read, and called when it is run. */
public final class CallStatement extends IcebergCommand {
  private static final Pattern CALL = Pattern.compile(
      "(?is)((?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*)CALL(\\s.*?\\))[\\s;]*");

  private final CatalogProcedure procedure;
  private final Expression[] arguments;

  private CallStatement(
      IcebergCatalog catalog, Identifier ident, CatalogProcedure procedure, Expression[] arguments, Seq output) {
    super(catalog, ident, output);
    this.procedure = procedure;
    this.arguments = arguments;
  }

  /** Null if the text is no call. */
  public static LogicalPlan read(SparkSession session, ParserInterface parser, String text) throws Exception {
    try {
      return call(session, parser, text);
    } catch (AnalysisException e) {
      throw ofParser(e);
    }
  }

  /** A parser may throw only errors of syntax; ours have no class that Spark would know. */
  private static Exception ofParser(AnalysisException error) {
    if (error.getErrorClass() != null) {
      return error;
    }
    Option none = Option.empty();
    Origin nowhere = new Origin(none, none, none, none, none, none, none);
    Map empty = (Map) Map$.MODULE$.empty();
    Exception made = new ParseException(none, error.message(), nowhere, nowhere, none, empty, new QueryContext[0]);
    made.addSuppressed(error);
    return made;
  }

  private static LogicalPlan call(SparkSession session, ParserInterface parser, String text) throws Exception {
    Matcher call = CALL.matcher(text);
    UnresolvedFunction called = call.matches()
        ? function(parser.parsePlan(call.group(1) + "SELECT" + call.group(2))) : null;
    if (called == null) {
      return null;
    }
    List parts = new ArrayList(CollectionConverters.asJava(called.nameParts()));
    CatalogManager manager = session.sessionState().catalogManager();
    boolean named = parts.size() > 1 && manager.isCatalogRegistered((String) parts.get(0));
    CatalogPlugin catalog = named ? manager.catalog((String) parts.remove(0)) : manager.currentCatalog();
    if (!(catalog instanceof IcebergCatalog)) {
      throw Failures.of("UnsupportedError: the catalog " + catalog.name() + " has no procedures.", null);
    }
    Identifier ident = TableName.of((String[]) parts.toArray(new String[0]));
    CatalogProcedure procedure = (CatalogProcedure) ((ProcedureCatalog) catalog).loadProcedure(ident);
    return new CallStatement(
        (IcebergCatalog) catalog, ident, procedure, bound(procedure, called.arguments()), output(procedure.columns()));
  }

  private static UnresolvedFunction function(LogicalPlan plan) {
    if (!(plan instanceof Project) || !(((Project) plan).child() instanceof OneRowRelation)) {
      return null;
    }
    List columns = CollectionConverters.asJava(((Project) plan).projectList());
    Object only = columns.size() == 1 && columns.get(0) instanceof UnresolvedAlias
        ? ((UnresolvedAlias) columns.get(0)).child() : null;
    return only instanceof UnresolvedFunction ? (UnresolvedFunction) only : null;
  }

  /** In the order of the parameters, with Spark's own errors. */
  private static Expression[] bound(CatalogProcedure procedure, Seq given) {
    ProcedureParameter[] parameters = procedure.parameters();
    List inputs = new ArrayList();
    for (int i = 0; i < parameters.length; i++) {
      Option otherwise = parameters[i].required ? Option.empty() : Option.apply(Literal$.MODULE$.apply(null));
      inputs.add(new InputParameter(parameters[i].name(), otherwise));
    }
    List bound = CollectionConverters.asJava(NamedParametersSupport$.MODULE$.defaultRearrange(
        new FunctionSignature(CollectionTools.seq(inputs)), given, procedure.name()));
    return (Expression[]) bound.toArray(new Expression[0]);
  }

  private static Seq output(StructType columns) {
    List output = new ArrayList();
    for (int i = 0; i < columns.fields().length; i++) {
      output.add(WorkerFiles.attribute(columns.fields()[i]));
    }
    return CollectionTools.seq(output);
  }

  public List rows(SparkSession session) throws Exception {
    List rows = new ArrayList();
    for (Iterator it = procedure.call(values(session)); it.hasNext();) {
      LocalScan result = (LocalScan) it.next();
      Function1 converter = CatalystTypeConverters$.MODULE$.createToScalaConverter(result.readSchema());
      InternalRow[] found = result.rows();
      for (int i = 0; i < found.length; i++) {
        rows.add(converter.apply(found[i]));
      }
    }
    return rows;
  }

  private InternalRow values(SparkSession session) {
    ProcedureParameter[] parameters = procedure.parameters();
    List columns = new ArrayList();
    for (int i = 0; i < parameters.length; i++) {
      Expression typed = Cast$.MODULE$.apply(arguments[i], parameters[i].dataType(), true);
      columns.add(new Alias(
          typed, parameters[i].name(), NamedExpression$.MODULE$.newExprId(), Nil$.MODULE$, Option.empty(), Nil$.MODULE$));
    }
    LogicalPlan plan = new Project(CollectionTools.seq(columns), new OneRowRelation());
    return session.sessionState().executePlan(plan, CommandExecutionMode.ALL()).executedPlan().executeCollect()[0];
  }
}
