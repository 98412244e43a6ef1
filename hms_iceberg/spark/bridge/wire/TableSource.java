package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Where an Iceberg table is found; a stream looks there again and again. */
public abstract class TableSource {
  public final Planner planner;

  /** The planner of the session that looks for the table. */
  public TableSource(Planner planner) {
    this.planner = planner;
  }

  /** The table's name, or its path. */
  public abstract String name();

  /** The name that Spark shows, with its catalog. */
  public String shownName() {
    return name();
  }

  /** The name of the newest version (see Pointer), or null if there is no such table. */
  public abstract String metadataLocation();

  /** The same, or that of a view of the name; null if there is neither. */
  public Pointer pointer() {
    String location = metadataLocation();
    return location == null ? null : new Pointer(location, false);
  }

  /** What Python finds under the name: in a transaction, as its statements leave it; null if there is neither. */
  public Pointer found() {
    ObjectNode question = Planner.question("find");
    addTarget(question);
    JsonNode found = planner.ask(question).header();
    return found.get("metadata_location").isNull()
        ? null : new Pointer(found.get("metadata_location").asText(), found.has("view"));
  }

  /** The named catalog that the table is of, for a question about a read; none for the session's own and for paths. */
  public void addCatalog(ObjectNode question) {}

  /** By what Python finds the table to change it: its catalog, namespace and name, or its path. */
  public abstract void addTarget(ObjectNode question);

  /** A question that changes the table. */
  public ObjectNode change(String call) {
    ObjectNode question = Planner.question(call);
    question.put("name", name());
    addTarget(question);
    return question;
  }
}
