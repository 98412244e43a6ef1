package hms_iceberg.bridge.tables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.columns.UnsupportedTypes;
import hms_iceberg.bridge.scan.ChangesScan;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.TableSource;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.internal.SQLConf;

/** The versions of a table, as Spark's tables. */
public final class TableVersions {
  private TableVersions() {}

  /**
   * One version of the table, or of its metadata.
   *
   * @param source where the table is found
   * @param location the name of the version
   * @param part the metadata table or the selector that follows the table's name, or null
   * @param version what follows VERSION AS OF, or null
   * @param asOfMicros what follows TIMESTAMP AS OF, or null
   * @param options the options of the read that choose what is read, or null
   */
  public static Table load(
      TableSource source, String location, String part, String version, Long asOfMicros, Map options) {
    ObjectNode question = question(source, location, version, asOfMicros, options);
    String[] selector = part == null ? null : selector(part);
    if (selector != null) {
      question.withObject("/options").put(selector[0], selector[1]);
    }
    if (part == null || selector != null) {
      return new IcebergTable(source, question);
    }
    return ChangesTable.NAME.equalsIgnoreCase(part)
        ? (Table) new ChangesTable(new ChangesScan.Described(source.planner, question))
        : (Table) new MetadataTable(source.planner, question, part);
  }

  /**
   * The question for the changes of a table.
   *
   * @param part the selector that follows the table's name, or null
   * @param options of the read
   */
  public static ObjectNode changes(TableSource source, String location, String part, Map options) {
    ObjectNode question = question(source, location, null, null, options);
    String[] selector = part == null ? null : selector(part);
    if (selector != null) {
      question.withObject("/options").put(selector[0], selector[1]);
    } else if (part != null) {
      throw Failures.of("UnsupportedError: cannot read the changes of " + source.name() + "." + part
          + ": there are changes of tables and of their branches only. Read those of " + source.name() + ".", null);
    }
    return question;
  }

  private static ObjectNode question(
      TableSource source, String location, String version, Long asOfMicros, Map options) {
    ObjectNode question = Planner.question("load");
    question.put("name", source.name());
    question.put("metadata_location", location);
    question.put("version", version);
    question.put("as_of_micros", asOfMicros);
    question.set("lacking_types", UnsupportedTypes.lacking()); // for UnsupportedTypes: the answer is kept
    if (options != null) {
      question.set("options", Json.MAPPER.valueToTree(options));
    }
    String branch = SQLConf.get().getConfString("spark.wap.branch", null);
    if (branch != null) {
      question.put("wap_branch", branch);
    }
    source.addCatalog(question);
    return question;
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
