package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that is defined and not there yet. What is written into it becomes part of the commit that makes it. */
final class StagedIcebergTable extends IcebergTable implements StagedTable {
  private final Planner planner;
  private final JsonNode number;

  StagedIcebergTable(TableSource source, JsonNode number, JsonNode description) {
    super(new Source(source, number), new Described(description));
    this.planner = source.planner;
    this.number = number;
  }

  public void commitStagedChanges() {
    end("commit-staged");
  }

  public void abortStagedChanges() {
    end("abort-staged");
  }

  /** Spark 4.3 asks for them of every staged table. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  private void end(String call) {
    ObjectNode question = Planner.question(call);
    question.set("staged", number);
    planner.ask(question);
  }

  /** Changes go to the table's transaction. */
  static final class Source extends TableSource {
    private final TableSource table;
    private final JsonNode number;

    Source(TableSource table, JsonNode number) {
      super(table.planner);
      this.table = table;
      this.number = number;
    }

    String name() {
      return table.name();
    }

    String shownName() {
      return table.shownName();
    }

    String metadataLocation() {
      return null;
    }

    void addCatalog(ObjectNode question) {
      table.addCatalog(question);
    }

    void addTarget(ObjectNode question) {
      table.addTarget(question);
      question.set("staged", number);
    }
  }
}
