package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.internal.SQLConf;

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
    ObjectNode question = Bridge.question(call);
    question.put("name", name());
    addTarget(question);
    return question;
  }

  /**
   * One version of the table, or of its metadata.
   *
   * @param location the name of the version
   * @param part the metadata table or the selector that follows the table's name, or null
   * @param version what follows VERSION AS OF, or null
   * @param asOfMicros what follows TIMESTAMP AS OF, or null
   * @param options the options of the read that choose what is read, or null
   */
  Table load(String location, String part, String version, Long asOfMicros, Map options) {
    ObjectNode question = Bridge.question("load");
    question.put("name", name());
    question.put("metadata_location", location);
    question.put("version", version);
    question.put("as_of_micros", asOfMicros);
    question.set("lacking_types", UnsupportedTypes.lacking()); // for UnsupportedTypes: the answer is kept
    if (options != null) {
      question.set("options", Bridge.JSON.valueToTree(options));
    }
    String branch = SQLConf.get().getConfString("spark.wap.branch", null);
    if (branch != null) {
      question.put("wap_branch", branch);
    }
    addCatalog(question);
    String[] selector = part == null ? null : selector(part);
    if (selector != null) {
      question.withObject("/options").put(selector[0], selector[1]);
    }
    if (part == null || selector != null) {
      return new IcebergTable(this, question);
    }
    return ChangesTable.NAME.equalsIgnoreCase(part)
        ? (Table) new ChangesTable(planner, question) : (Table) new MetadataTable(planner, question, part);
  }

  /** db.t.branch_b, tag_t, snapshot_id_1 and at_timestamp_2 are versions of db.t, as the options of a read say. */
  private static String[] selector(String part) {
    String[] prefixes = {"branch_", "tag_", "snapshot_id_", "at_timestamp_"};
    String[] names = {"branch", "tag", "snapshot-id", "as-of-timestamp"};
    for (int i = 0; i < prefixes.length; i++) {
      if (part.startsWith(prefixes[i])) {
        return new String[] {names[i], part.substring(prefixes[i].length())};
      }
    }
    return null;
  }
}
