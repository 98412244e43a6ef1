package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.Planner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Plans whose manifests executors read. Python decides whether they do, and answers with tasks instead of a plan; it is
 * asked again with what the tasks of each job answered, until it has the plan.
 */
final class PlanningJobs implements Planner.AnswerReader {
  private static final String SETTINGS = "spark.sql.iceberg.";
  private static final String[] MODES = {"data-planning-mode", "delete-planning-mode"};

  private final SparkSession session;
  private final Planner planner;
  private final ObjectNode question;
  private final Planner.AnswerReader reader;

  /** Reads the answer to a question for a plan, when it has come. */
  PlanningJobs(SparkSession session, Planner planner, ObjectNode question, Planner.AnswerReader reader) {
    this.session = session;
    this.planner = planner;
    this.question = question;
    this.reader = reader;
  }

  /** Adds to a question for a plan who may read manifests. */
  static void offer(org.apache.spark.sql.SparkSession session, ObjectNode question) {
    question.put("slots", session.sparkContext().defaultParallelism());
    ObjectNode modes = question.putObject("planning_modes");
    for (int i = 0; i < MODES.length; i++) {
      Option set = session.conf().getOption(SETTINGS + MODES[i]);
      if (set.isDefined()) {
        modes.put("read." + MODES[i], (String) set.get());
      }
    }
  }

  public Object read(Answer answer) {
    ObjectNode further = question.deepCopy();
    ArrayNode planned = further.putArray("planned");
    while (answer.header().has("tasks")) {
      byte[][] blobs = answer.takeBlobs(1 + answer.header().get("tasks").asInt());
      try {
        run(blobs, planned.addArray());
      } catch (Exception e) { // Spark throws checked ones, which Scala does not declare
        LoggerFactory.getLogger(PlanningJobs.class).warn("Executors could not read manifests; the driver does", e);
        further.put("slots", 0);
      }
      answer = planner.ask(further);
    }
    return reader.read(answer);
  }

  /** Runs the first of these, a function, with each of the others. */
  private void run(byte[][] blobs, ArrayNode answers) {
    List rows = new ArrayList();
    for (int i = 1; i < blobs.length; i++) {
      rows.add(RowFactory.create(new Object[] {blobs[i]}));
    }
    LogicalPlan tasks = ((Dataset) session.createDataFrame(rows, binary("task"))).logicalPlan();
    List answer = Collections.singletonList(WorkerFiles.attribute(binary("answer").fields()[0]));
    LogicalPlan plan = WorkerFiles.inWorkers("plan_iceberg_files", planner.worker(), blobs[0], answer, tasks);
    Object[] collected = (Object[]) Dataset$.MODULE$.ofRows(session, plan).collect();
    for (int i = 0; i < collected.length; i++) {
      answers.add((byte[]) ((Row) collected[i]).get(0));
    }
  }

  private static StructType binary(String name) {
    return new StructType(new StructField[] {
        new StructField(name, BinaryType$.MODULE$, false, Metadata.empty())});
  }
}
