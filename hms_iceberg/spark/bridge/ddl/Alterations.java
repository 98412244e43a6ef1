package hms_iceberg.bridge.ddl;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.SparkVersions;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** What ALTER TABLE says, as JSON for Python. */
public final class Alterations {
  private Alterations() {}

  /** Puts changes into a question about a table. */
  public static ObjectNode alter(ObjectNode question, StructType schema, TableChange[] changes) {
    ArrayNode said = question.putArray("changes");
    for (int i = 0; i < changes.length; i++) {
      said.add(changes[i] instanceof TableChange.ColumnChange
          ? ofColumn((TableChange.ColumnChange) changes[i], schema)
          : ofProperties(changes[i], question.get("name").asText()));
    }
    return question;
  }

  private static ObjectNode ofProperties(TableChange change, String table) {
    if (change instanceof TableChange.SetProperty) {
      ObjectNode said = change("set");
      said.put("key", ((TableChange.SetProperty) change).property());
      return said.put("value", ((TableChange.SetProperty) change).value());
    }
    if (change instanceof TableChange.RemoveProperty) {
      return change("remove").put("key", ((TableChange.RemoveProperty) change).property());
    }
    throw Failures.of("UnsupportedError: " + change.getClass().getSimpleName() + " is not something that can be changed"
        + " of the Iceberg table " + table + ". Nothing was changed.", null);
  }

  private static ObjectNode ofColumn(TableChange.ColumnChange change, StructType schema) {
    ObjectNode said = columnChange(change, schema);
    said.set("path", Json.MAPPER.valueToTree(change.fieldNames()));
    return said;
  }

  private static ObjectNode columnChange(TableChange.ColumnChange change, StructType schema) {
    if (change instanceof TableChange.AddColumn) {
      return added((TableChange.AddColumn) change);
    }
    if (change instanceof TableChange.RenameColumn) {
      return change("rename").put("new_name", ((TableChange.RenameColumn) change).newName());
    }
    if (change instanceof TableChange.DeleteColumn) {
      return change("delete");
    }
    if (change instanceof TableChange.UpdateColumnPosition) {
      return at(change("move"), ((TableChange.UpdateColumnPosition) change).position());
    }
    if (change instanceof TableChange.UpdateColumnType) {
      DataType type = ((TableChange.UpdateColumnType) change).newDataType();
      return change("type", column(change, type, true, null));
    }
    if (change instanceof TableChange.UpdateColumnNullability) {
      boolean nullable = ((TableChange.UpdateColumnNullability) change).nullable();
      return change("nullability", column(change, null, nullable, null));
    }
    if (change instanceof TableChange.UpdateColumnComment) {
      String comment = ((TableChange.UpdateColumnComment) change).newComment();
      return change("comment", column(change, null, true, comment));
    }
    if (change instanceof TableChange.UpdateColumnDefaultValue) {
      DataType type = schema.apply(name(change)).dataType();
      ObjectNode column = column(change, type, true, null);
      Defaults.put(column, name(change), type, ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
      return change("default", column);
    }
    throw Failures.of("UnsupportedError: " + change.getClass().getSimpleName() + " of the column "
        + String.join(".", change.fieldNames()) + " is not supported for Iceberg tables. Nothing was changed.", null);
  }

  private static ObjectNode added(TableChange.AddColumn change) {
    ObjectNode column = column(change, change.dataType(), change.isNullable(), change.comment());
    if (change.defaultValue() != null) {
      Defaults.put(column, name(change), change.dataType(), SparkVersions.sql(change.defaultValue()));
    }
    return at(change("add", column), change.position());
  }

  private static ObjectNode at(ObjectNode said, TableChange.ColumnPosition position) {
    if (position instanceof TableChange.After) {
      said.put("after", ((TableChange.After) position).column());
    } else if (position instanceof TableChange.First) {
      said.put("first", true);
    }
    return said;
  }

  private static String name(TableChange.ColumnChange change) {
    return change.fieldNames()[change.fieldNames().length - 1];
  }

  private static ObjectNode column(TableChange.ColumnChange change, DataType type, boolean nullable, String comment) {
    ObjectNode column = Json.MAPPER.createObjectNode();
    column.put("name", name(change));
    column.set("type", type == null ? Json.MAPPER.nullNode() : Definitions.type(type));
    column.put("nullable", nullable);
    return column.put("comment", comment);
  }

  private static ObjectNode change(String kind) {
    return Json.MAPPER.createObjectNode().put("kind", kind);
  }

  private static ObjectNode change(String kind, ObjectNode column) {
    ObjectNode said = change(kind);
    said.set("column", column);
    return said;
  }
}
