package hms_iceberg.bridge.catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.TableSource;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.internal.SQLConf;

/** One of Iceberg's ALTER TABLE statements, as Spark hands it to the table's catalog: see Statements. */
public final class CarriedStatement {
  public static final String PROPERTY = "hms_iceberg.statement";

  private CarriedStatement() {}

  static boolean isStatement(TableChange[] changes) {
    return changes.length == 1 && changes[0] instanceof TableChange.SetProperty
        && PROPERTY.equals(((TableChange.SetProperty) changes[0]).property());
  }

  public static void run(TableSource source, TableChange[] changes) {
    ObjectNode question = source.change("run-statement");
    question.put("statement", ((TableChange.SetProperty) changes[0]).value());
    question.put("case_sensitive", SQLConf.get().caseSensitiveAnalysis());
    Extension.activePlanner().ask(question);
  }
}
