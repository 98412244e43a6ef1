package hms_iceberg.bridge.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.table.DescribedTable;
import java.util.UUID;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A write whose rules are known: Python was asked once, and is asked once more at the commit. */
public final class TableWrite implements RequiresDistributionAndOrdering {
  private final SparkSession session;
  private final DescribedTable table;
  private final ObjectNode question;
  private final JsonNode answer;
  private FilesOfLateTasks late;

  public TableWrite(SparkSession session, DescribedTable table, ObjectNode question) {
    this.session = session;
    this.table = table;
    this.question = question;
    this.answer = ask(question);
  }

  public Distribution requiredDistribution() {
    return Layouts.distribution(answer.get("distribution"));
  }

  /** The rows may come in fewer tasks than clusters, or a small cluster be joined to another. */
  public boolean distributionStrictlyRequired() {
    return requiredNumPartitions() > 0;
  }

  public int requiredNumPartitions() {
    return answer.get("distribution").get("partitions").asInt();
  }

  public SortOrder[] requiredOrdering() {
    return Layouts.ordering(answer.get("distribution"));
  }

  public long advisoryPartitionSizeInBytes() {
    return answer.get("distribution").get("advisory_size").asLong();
  }

  public BatchWrite toBatch() {
    return new TableBatch(this);
  }

  public StreamingWrite toStreaming() {
    return new TableStream(this);
  }

  public RowWriters writers() {
    late = new FilesOfLateTasks(session.sparkContext(), session.sessionState().newHadoopConf());
    // A stream has the same id after a restart, and Spark counts its tasks anew then: names would meet those of before.
    WriteRules rules = new WriteRules(answer.get("rules"), UUID.randomUUID().toString(), table.planner().worker());
    return new RowWriters(session, rules, late.locations());
  }

  public SparkSession session() {
    return session;
  }

  /** All tasks have ended, and their files are known. */
  public void committed() {
    if (late != null) {
      late.committed();
    }
  }

  /** The job has failed, or was cancelled: tasks may still end, and nobody hears of their files. */
  public void aborted() {
    if (late != null) {
      late.aborted();
    }
  }

  /** The session that runs a query of a stream may be another than the one that the table is of. */
  public JsonNode ask(ObjectNode asked) {
    return table.planner().ask(asked).header();
  }

  /** The question that commits: what was asked at the beginning, and what was decided then. */
  public ObjectNode commit() {
    ObjectNode commit = (ObjectNode) question.deepCopy();
    commit.put("call", "commit-write");
    commit.set("decided", answer.get("decided"));
    commit.remove("schema");
    return commit;
  }

  public String description() {
    return "Iceberg " + table.name();
  }

  public String toString() {
    return "Iceberg " + table.name() + " (" + question.get("kind").asText() + ")";
  }
}
