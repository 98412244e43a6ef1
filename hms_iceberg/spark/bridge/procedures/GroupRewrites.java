package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.functions.CurveFunction;
import hms_iceberg.bridge.tables.IcebergTable;
import hms_iceberg.bridge.tables.TableVersions;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.SparkVersions;
import hms_iceberg.bridge.wire.TableSource;
import hms_iceberg.bridge.write.TableWrite;
import hms_iceberg.bridge.write.TableWriteBuilder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rewrites the groups of files that Python has planned, some at once: a query for each reads its files and writes their
 * rows anew. Python is told of each group, and commits.
 */
public final class GroupRewrites {
  private static final double SAMPLED_ROWS = 200000;

  private final SparkSession session;
  private final Planner planner;
  private final JsonNode rewrite;
  private final String tag = "hms_iceberg-rewrite-" + UUID.randomUUID();

  public GroupRewrites(SparkSession session, Planner planner, JsonNode rewrite) {
    this.session = session;
    this.planner = planner;
    this.rewrite = rewrite;
  }

  /** Rewrites all groups and commits what is left; the answer has the rows of the procedure's result. */
  public Answer finished() {
    try {
      run();
      return planner.ask(question("end-rewrite", -1));
    } catch (Throwable e) {
      planner.ask(question("abandon-rewrite", -1));
      org.apache.spark.unsafe.Platform.throwException(e);
      return null;
    }
  }

  /** Rewrites all groups. Threads that are made here have the job group of this one, so that it can be cancelled. */
  public void run() {
    ExecutorService pool = Executors.newFixedThreadPool(rewrite.get("at_once").asInt());
    boolean done = false;
    try {
      List running = new ArrayList();
      for (int i = 0; i < rewrite.get("splits").size(); i++) {
        running.add(pool.submit(new Group(i)));
      }
      for (int i = 0; i < running.size(); i++) {
        ((Future) running.get(i)).get();
      }
      done = true;
    } catch (ExecutionException e) {
      org.apache.spark.unsafe.Platform.throwException(e.getCause());
    } catch (InterruptedException e) {
      org.apache.spark.unsafe.Platform.throwException(e);
    } finally {
      pool.shutdownNow();
      if (!done) {
        session.sparkContext().cancelJobsWithTag(tag);
        await(pool);
      }
    }
  }

  /** What is under way deletes its own files; what it has handed over is to be deleted after that. */
  private static void await(ExecutorService pool) {
    try {
      pool.awaitTermination(1, TimeUnit.MINUTES);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private ObjectNode question(String call, int group) {
    ObjectNode question = Planner.question(call);
    new Source(planner, rewrite, group).addTarget(question);
    return question;
  }

  private void rewrite(int number) {
    Source source = new Source(planner, rewrite, number);
    Map options = new HashMap();
    options.put("split-size", Json.at(rewrite.get("splits"), number).asText());
    options.put("file-open-cost", "1");
    IcebergTable files = (IcebergTable) TableVersions.load(source, source.metadataLocation(), null, null, null, options);
    LogicalPlan rows = alongCurve(rows(files), number);
    Target target = new Target(files, rows.schema());
    // It has the functions to sort by.
    Option catalog = Option.apply((CatalogPlugin) session.sessionState().catalogManager().v2SessionCatalog());
    Dataset$.MODULE$.ofRows(
        session,
        SparkVersions.append(DataSourceV2Relation.create(target, catalog, Option.empty()), rows));
  }

  /** All columns of the table, and the lineage of the rows if they have one. */
  private LogicalPlan rows(IcebergTable files) {
    DataSourceV2Relation relation = DataSourceV2Relation.create(files, Option.empty(), Option.empty());
    if (!rewrite.get("lineage").asBoolean()) {
      return relation;
    }
    DataSourceV2Relation full = relation.withMetadataColumns();
    List columns = new ArrayList(CollectionConverters.asJava(relation.output()));
    List all = CollectionConverters.asJava(full.output());
    for (int i = columns.size(); i < all.size(); i++) {
      String name = ((Attribute) all.get(i)).name();
      if (name.equals(MetadataColumns.ROW_ID) || name.equals(MetadataColumns.LAST_UPDATED)) {
        columns.add(all.get(i));
      }
    }
    return new Project(CollectionTools.seq(columns), full);
  }

  /** For a z-order, the rows along the curve, a task for each file that is expected; a sample tells what is where. */
  private LogicalPlan alongCurve(LogicalPlan rows, int number) {
    JsonNode names = rewrite.get("curve");
    if (names.size() == 0) {
      return rows;
    }
    Column[] columns = new Column[names.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new Column(Json.at(names, i).asText());
    }
    Dataset keys = Dataset$.MODULE$.ofRows(session, rows).select(columns);
    List terms = new ArrayList();
    List fields = CollectionConverters.asJava(((Project) keys.queryExecution().analyzed()).projectList());
    for (int i = 0; i < fields.size(); i++) {
      terms.add(fields.get(i) instanceof Alias ? ((Alias) fields.get(i)).child() : fields.get(i));
    }
    double part = SAMPLED_ROWS / Math.max(1.0, Json.at(rewrite.get("rows"), number).asDouble());
    List sample = (part < 1 ? keys.sample(false, part, 17L) : keys).collectAsList();
    Expression key = new ApplyFunctionExpression(new CurveFunction(keys.schema(), sample), CollectionTools.seq(terms));
    SortOrder order = new SortOrder(
        key, Ascending$.MODULE$, NullsFirst$.MODULE$, CollectionTools.seq(new ArrayList()));
    List orders = new ArrayList();
    orders.add(order);
    LogicalPlan spread = RepartitionByExpression$.MODULE$.apply(
        CollectionTools.seq(orders), rows, Json.at(rewrite.get("files"), number).asInt());
    return Generation.sortWithin(CollectionTools.seq(orders), spread);
  }

  final class Group implements Callable {
    private final int number;

    Group(int number) {
      this.number = number;
    }

    public Object call() {
      if (!planner.ask(question("may-rewrite", number)).header().get("go_on").asBoolean()) {
        return null;
      }
      SparkSession.setActiveSession(session);
      session.sparkContext().addJobTag(tag);
      try {
        rewrite(number);
      } catch (Exception e) {
        ObjectNode failed = question("failed-rewrite", number);
        failed.put("message", String.valueOf(e.getMessage()));
        planner.ask(failed);
      }
      return null;
    }
  }

  /** The files of one group, at the version of the table that was planned. */
  public static final class Source extends TableSource {
    private final JsonNode rewrite;
    private final int group;

    public Source(Planner planner, JsonNode rewrite, int group) {
      super(planner);
      this.rewrite = rewrite;
      this.group = group;
    }

    public String name() {
      return rewrite.get("name").asText();
    }

    public String metadataLocation() {
      return rewrite.get("metadata_location").asText();
    }

    public void addCatalog(ObjectNode question) {
      addTarget(question);
    }

    public void addTarget(ObjectNode question) {
      ObjectNode part = question.putObject("rewrite");
      part.set("run", rewrite.get("run"));
      part.put("group", group);
    }
  }

  /** Where the rows of a group go. */
  static final class Target implements SupportsWrite {
    private final IcebergTable files;
    private final StructType rows;

    Target(IcebergTable files, StructType rows) {
      this.files = files;
      this.rows = rows;
    }

    public String name() {
      return files.name();
    }

    public StructType schema() {
      return rows;
    }

    public Set capabilities() {
      Set capabilities = new HashSet();
      capabilities.add(TableCapability.BATCH_WRITE);
      capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
      return capabilities;
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new Builder(files, info);
    }
  }

  public static final class Builder implements WriteBuilder {
    private final IcebergTable files;
    private final LogicalWriteInfo info;

    public Builder(IcebergTable files, LogicalWriteInfo info) {
      this.files = files;
      this.info = info;
    }

    public Write build() {
      ObjectNode question = TableWriteBuilder.question(files, info);
      question.put("kind", "rewrite");
      return new TableWrite((SparkSession) SparkSession.active(), files, question);
    }
  }
}
