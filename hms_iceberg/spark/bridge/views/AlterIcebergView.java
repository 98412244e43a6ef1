package hms_iceberg.bridge.views;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.sql.IcebergCommand;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Json;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A change of a view: its properties, its name, or its end. */
public final class AlterIcebergView extends IcebergCommand {
  private final ObjectNode question;
  private final Identifier target;
  private final boolean ifExists;

  private AlterIcebergView(
      IcebergCatalog catalog, Identifier ident, ObjectNode question, Identifier target, boolean ifExists) {
    super(catalog, ident, CollectionTools.seq(Collections.emptyList()));
    this.question = question;
    this.target = target;
    this.ifExists = ifExists;
  }

  private static AlterIcebergView of(IcebergCatalog catalog, Identifier ident, ObjectNode question) {
    return new AlterIcebergView(catalog, ident, question, ident, false);
  }

  public static AlterIcebergView drop(IcebergCatalog catalog, Identifier ident, boolean ifExists) {
    return new AlterIcebergView(catalog, ident, catalog.source(ident).change("drop-view"), ident, ifExists);
  }

  public static AlterIcebergView set(IcebergCatalog catalog, Identifier ident, Map properties) {
    ObjectNode question = catalog.source(ident).change("alter-view");
    question.set("updates", Json.MAPPER.valueToTree(CollectionConverters.asJava(properties)));
    return of(catalog, ident, question);
  }

  public static AlterIcebergView unset(IcebergCatalog catalog, Identifier ident, Seq names, boolean ifExists) {
    ObjectNode question = catalog.source(ident).change("alter-view");
    question.set("removals", Json.MAPPER.valueToTree(CollectionConverters.asJava(names)));
    question.put("if_exists", ifExists);
    return of(catalog, ident, question);
  }

  public static AlterIcebergView rename(IcebergCatalog catalog, Identifier ident, Identifier target) {
    ObjectNode question = catalog.source(ident).change("rename-view");
    question.put("to_namespace", TableName.database(target));
    question.put("to_view", target.name());
    return new AlterIcebergView(catalog, ident, question, target, false);
  }

  public List rows(SparkSession session) throws Exception {
    try {
      change(question, target);
    } catch (NoSuchViewException e) {
      if (!ifExists) {
        throw e;
      }
    }
    return Collections.emptyList();
  }
}
