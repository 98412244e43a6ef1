package hms_iceberg.bridge.scan;

import hms_iceberg.bridge.batches.MetadataColumns;
import hms_iceberg.bridge.columns.Structs;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;

/** What Spark learns of values while a query runs, such as those of the other side of a join. */
final class RuntimeFilters {
  private final List columns = new ArrayList();
  private final List literals = new ArrayList();

  /** The columns that files may be chosen by, of those that are read. */
  public static NamedReference[] columns(PlannedPartitions partitions, StructType read, boolean hidesFile) {
    List references = new ArrayList();
    for (Iterator it = partitions.columns().iterator(); it.hasNext();) {
      List path = (List) it.next();
      if (path.size() == 1 && Structs.has(read, (String) path.get(0))) {
        references.add(reference((String) path.get(0)));
      }
    }
    if (hidesFile && Structs.has(read, MetadataColumns.FILE)) {
      references.add(reference(MetadataColumns.FILE));
    }
    return (NamedReference[]) references.toArray(new NamedReference[0]);
  }

  private static NamedReference reference(String column) {
    return Expressions.column("`" + column.replace("`", "``") + "`");
  }

  /** Adds those that say which values a column has; others leave nothing out. */
  public void add(Predicate[] predicates) {
    for (int i = 0; i < predicates.length; i++) {
      Expression[] children = predicates[i].children();
      boolean isKnown = ("IN".equals(predicates[i].name()) || "=".equals(predicates[i].name()))
          && children.length > 0 && children[0] instanceof NamedReference;
      Literal[] values = new Literal[Math.max(0, children.length - 1)];
      for (int j = 0; isKnown && j < values.length; j++) {
        isKnown = children[j + 1] instanceof Literal;
        values[j] = isKnown ? (Literal) children[j + 1] : null;
      }
      if (isKnown) {
        columns.add(children[0]);
        literals.add(values);
      }
    }
  }

  /** Those of the partitions that are kept which may have such values. */
  public boolean[] keep(PlannedPartitions partitions, boolean[] kept) {
    boolean[] left = (boolean[]) kept.clone();
    for (int i = 0; i < columns.size(); i++) {
      partitions.keep((NamedReference) columns.get(i), (Literal[]) literals.get(i), left);
    }
    return left;
  }

  /** The paths of the files; null if it may be any. */
  public Set files() {
    Set files = null;
    for (int i = 0; i < columns.size(); i++) {
      String[] name = ((NamedReference) columns.get(i)).fieldNames();
      if (name.length == 1 && MetadataColumns.FILE.equals(name[0])) {
        Set named = new HashSet();
        Literal[] values = (Literal[]) literals.get(i);
        for (int j = 0; j < values.length; j++) {
          named.add(String.valueOf(values[j].value()));
        }
        if (files == null) {
          files = named;
        } else {
          files.retainAll(named);
        }
      }
    }
    return files;
  }
}
