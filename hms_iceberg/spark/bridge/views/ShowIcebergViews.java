package hms_iceberg.bridge.views;

import hms_iceberg.bridge.catalog.NamedCatalog;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.sql.IcebergCommand;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Generation;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** SHOW VIEWS: those of a named catalog's namespace, and the session's temporary ones. */
public final class ShowIcebergViews extends IcebergCommand {
  private final NamedCatalog named;
  private final String[] namespace;
  private final String pattern;

  ShowIcebergViews(NamedCatalog catalog, String[] namespace, Option pattern, Seq output) {
    super(catalog, new TableName(namespace, "*"), output);
    this.named = catalog;
    this.namespace = namespace;
    this.pattern = pattern.isDefined() ? (String) pattern.get() : "*";
  }

  public List rows(SparkSession session) throws Exception {
    SessionCatalog known = session.sessionState().catalog();
    List rows = new ArrayList();
    if (namespace.length > 0 && namespace[0].equals(Generation.globalTempDatabase(known))) {
      for (Iterator it = asJava(known.globalTempViewManager().listViewNames(pattern)); it.hasNext();) {
        rows.add(RowFactory.create(new Object[] {namespace[0], it.next(), Boolean.TRUE}));
      }
    } else {
      for (Iterator it = asJava(StringUtils.filterPattern(views(), pattern)); it.hasNext();) {
        rows.add(RowFactory.create(new Object[] {String.join(".", namespace), it.next(), Boolean.FALSE}));
      }
    }
    for (Iterator it = asJava(known.listLocalTempViews(pattern)); it.hasNext();) {
      rows.add(RowFactory.create(new Object[] {"", ((TableIdentifier) it.next()).table(), Boolean.TRUE}));
    }
    return rows;
  }

  private Seq views() throws Exception {
    return CollectionTools.seq(namespace.length == 0 ? Collections.emptyList() : named.listViews(namespace));
  }

  private static Iterator asJava(Seq values) {
    return CollectionConverters.asJava(values).iterator();
  }
}
