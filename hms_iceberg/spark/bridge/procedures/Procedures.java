package hms_iceberg.bridge.procedures;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.functions.Functions;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Planner;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;

/** The procedures of a catalog's namespace system. Python has the table of them. */
public final class Procedures {
  private Procedures() {}

  /** Spark puts this error into its own, FAILED_TO_LOAD_ROUTINE. */
  public static UnboundProcedure load(IcebergCatalog catalog, Identifier ident) {
    JsonNode found = Functions.isSystem(ident.namespace())
        ? (JsonNode) known().get(ident.name().toLowerCase(Locale.ROOT)) : null;
    if (found == null) {
      throw Failures.of("InvalidInputError: there is no procedure " + TableName.text(ident) + ". Those of this catalog"
          + " are system." + String.join(", system.", new ArrayList(known().keySet())) + ".", null);
    }
    return new CatalogProcedure(catalog, found);
  }

  public static Identifier[] list(String[] namespace) {
    if (!Functions.isSystem(namespace)) {
      return new Identifier[0];
    }
    List idents = new ArrayList();
    for (Iterator it = known().keySet().iterator(); it.hasNext();) {
      idents.add(new TableName(namespace, (String) it.next()));
    }
    return (Identifier[]) idents.toArray(new Identifier[0]);
  }

  private static Map known() {
    return (Map) Extension.activePlanner().askOnce(Planner.question("procedures"), new Table());
  }

  public static final class Table implements Planner.AnswerReader {
    public Object read(Answer answer) {
      Map procedures = new LinkedHashMap();
      for (Iterator it = answer.header().get("procedures").elements(); it.hasNext();) {
        JsonNode procedure = (JsonNode) it.next();
        procedures.put(procedure.get("name").asText(), procedure);
      }
      return procedures;
    }
  }
}
