package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.TableSource;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that is defined and not there yet. What is written into it becomes part of the commit that makes it. */
public final class StagedIcebergTable extends IcebergTable implements StagedTable {
  private final Planner planner;
  private final JsonNode number;

  public StagedIcebergTable(TableSource source, JsonNode number, JsonNode description) {
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
  public static final class Source extends TableSource {
    private final TableSource table;
    private final JsonNode number;

    public Source(TableSource table, JsonNode number) {
      super(table.planner);
      this.table = table;
      this.number = number;
    }

    public String name() {
      return table.name();
    }

    public String shownName() {
      return table.shownName();
    }

    public String metadataLocation() {
      return null;
    }

    public void addCatalog(ObjectNode question) {
      table.addCatalog(question);
    }

    public void addTarget(ObjectNode question) {
      table.addTarget(question);
      question.set("staged", number);
    }
  }
}
