package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.columns.Structs;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Values;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.StructType;

/** By what the files of a plan are partitioned: the fields of their specs, and the values of each partition. */
final class PlannedPartitions {
  private final Map fields = new HashMap();
  private final Integer[] specs;
  private final Object[][] values;

  PlannedPartitions(JsonNode specs, JsonNode partitions) {
    for (Iterator it = specs.fields(); it.hasNext();) {
      Map.Entry spec = (Map.Entry) it.next();
      JsonNode told = (JsonNode) spec.getValue();
      PartitionField[] all = new PartitionField[told.size()];
      for (int i = 0; i < all.length; i++) {
        all[i] = PartitionField.of(Json.at(told, i));
      }
      fields.put(Integer.valueOf((String) spec.getKey()), all);
    }
    this.specs = new Integer[partitions.size()];
    this.values = new Object[partitions.size()][];
    for (int i = 0; i < values.length; i++) {
      JsonNode partition = Json.at(partitions, i);
      this.specs[i] = Integer.valueOf(partition.get("spec_id").asInt());
      values[i] = values(partition.get("fields"), fields(i));
    }
  }

  private static Object[] values(JsonNode told, PartitionField[] fields) {
    Object[] values = new Object[fields.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = fields[i] == null ? null : Values.of(fields[i].type, Json.at(told, i));
    }
    return values;
  }

  private PartitionField[] fields(int partition) {
    return (PartitionField[]) fields.get(specs[partition]);
  }

  /** The columns by which any of the files are partitioned, as lists of names. */
  public Set columns() {
    Set columns = new HashSet();
    for (Iterator it = fields.values().iterator(); it.hasNext();) {
      PartitionField[] each = (PartitionField[]) it.next();
      for (int i = 0; i < each.length; i++) {
        if (each[i] != null) {
          columns.add(Arrays.asList(each[i].column));
        }
      }
    }
    return columns;
  }

  /** Takes from those that are kept the partitions of which no row can have one of some values in a column. */
  public void keep(NamedReference column, Literal[] wanted, boolean[] kept) {
    List path = Arrays.asList(column.fieldNames());
    Map transformed = new HashMap();
    for (int i = 0; i < kept.length; i++) {
      PartitionField[] known = fields(i);
      for (int j = 0; kept[i] && j < known.length; j++) {
        if (known[j] != null && Arrays.asList(known[j].column).equals(path)) {
          Set among = (Set) transformed.get(known[j]);
          if (among == null) {
            among = transformed(known[j], wanted);
            transformed.put(known[j], among);
          }
          kept[i] = among.contains(null) || among.contains(PartitionField.comparable(values[i][j]));
        }
      }
    }
  }

  /** The values of a field that rows with some values of its column have; with null, it may be any. */
  private static Set transformed(PartitionField field, Literal[] wanted) {
    Set among = new HashSet();
    for (int i = 0; i < wanted.length; i++) {
      if (!wanted[i].dataType().equals(field.source)) {
        among.add(null);
      } else if (wanted[i].value() != null) { // which equals nothing
        among.add(field.transformed(wanted[i].value()));
      }
    }
    return among;
  }

  /** What the files of all specs are grouped by, of columns that are read; empty if there is nothing that all share. */
  public Expression[] keys(StructType read) {
    return (Expression[]) shared(read).keySet().toArray(new Expression[0]);
  }

  /** The keys of each partition, in the order of the expressions. */
  InternalRow[] keyValues(StructType read) {
    List places = new ArrayList(shared(read).values());
    InternalRow[] keys = new InternalRow[values.length];
    for (int i = 0; i < keys.length; i++) {
      Object[] key = new Object[places.size()];
      for (int j = 0; j < key.length; j++) {
        int place = ((Integer) ((Map) places.get(j)).get(specs[i])).intValue();
        key[j] = PartitionField.withoutSign(values[i][place]);
      }
      keys[i] = new GenericInternalRow(key);
    }
    return keys;
  }

  /** Expressions that all specs have, and in each spec the number of the field that is one. */
  private Map shared(StructType read) {
    Map shared = new LinkedHashMap();
    for (Iterator it = fields.entrySet().iterator(); it.hasNext();) {
      Map.Entry spec = (Map.Entry) it.next();
      PartitionField[] known = (PartitionField[]) spec.getValue();
      for (int i = 0; i < known.length; i++) {
        boolean isRead = known[i] != null && Structs.has(read, known[i].column[0]);
        Expression key = isRead ? known[i].key() : null;
        if (key != null) {
          Map places = (Map) shared.get(key);
          if (places == null) {
            places = new HashMap();
            shared.put(key, places);
          }
          places.put(spec.getKey(), Integer.valueOf(i));
        }
      }
    }
    for (Iterator it = shared.values().iterator(); it.hasNext();) {
      if (((Map) it.next()).size() < fields.size()) {
        it.remove();
      }
    }
    return shared;
  }
}
