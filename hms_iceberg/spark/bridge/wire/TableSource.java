package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** Where an Iceberg table is found; a stream looks there again and again. */
abstract class TableSource {
  final Planner planner;

  /** The planner of the session that looks for the table. */
  TableSource(Planner planner) {
    this.planner = planner;
  }

  /** The table's name, or its path. */
  abstract String name();

  /** The name that Spark shows, with its catalog. */
  String shownName() {
    return name();
  }

  /** The name of the newest version (see Pointer), or null if there is no such table. */
  abstract String metadataLocation();

  /** The same, or that of a view of the name; null if there is neither. */
  Pointer pointer() {
    String location = metadataLocation();
    return location == null ? null : new Pointer(location, false);
  }

  /** The named catalog that the table is of, for a question about a read; none for the session's own and for paths. */
  void addCatalog(ObjectNode question) {}

  /** By what Python finds the table to change it: its catalog, namespace and name, or its path. */
  abstract void addTarget(ObjectNode question);

  /** A question that changes the table. */
  ObjectNode change(String call) {
    ObjectNode question = Planner.question(call);
    question.put("name", name());
    addTarget(question);
    return question;
  }
}
