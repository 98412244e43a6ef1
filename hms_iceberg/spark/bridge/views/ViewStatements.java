package hms_iceberg.bridge.views;

import hms_iceberg.bridge.catalog.NamedCatalog;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Generation;
import hms_iceberg.bridge.wire.IcebergCatalog;
import hms_iceberg.bridge.wire.Pointer;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedView;
import org.apache.spark.sql.catalyst.plans.logical.AlterViewAs;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.DropView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.SetViewProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowViews;
import org.apache.spark.sql.catalyst.plans.logical.UnsetViewProperties;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Statements about Iceberg views, before Spark looks at their names: up to 4.2 it has no views but those of the session
 * catalog, and 4.3 has other ones than Apache Iceberg. CREATE VIEW in the session catalog is Hive's, as ever; what is said
 * there of an Iceberg view changes or shows that.
 */
public final class ViewStatements extends Rule {
  private final SparkSession session;

  public ViewStatements(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    LogicalPlan command = null;
    if (plan instanceof CreateView) {
      command = create((CreateView) plan);
    } else if (plan instanceof DropView) {
      command = drop((DropView) plan);
    } else if (plan instanceof ShowViews) {
      command = list((ShowViews) plan);
    } else {
      command = ofExisting((LogicalPlan) plan);
    }
    return command == null ? plan : command;
  }

  private LogicalPlan create(CreateView statement) {
    Found found = named(statement.child());
    boolean isOurs = found != null && (found.catalog instanceof NamedCatalog || statement.replace() && found.isView());
    return isOurs ? new CreateIcebergView(found.catalog, found.ident, statement) : null;
  }

  private LogicalPlan drop(DropView statement) {
    Found found = named(statement.child());
    boolean isOurs = found != null && (found.catalog instanceof NamedCatalog || found.isView());
    return isOurs ? AlterIcebergView.drop(found.catalog, found.ident, statement.ifExists()) : null;
  }

  private Found named(LogicalPlan identifier) {
    if (!(identifier instanceof UnresolvedIdentifier)) {
      return null;
    }
    UnresolvedIdentifier name = (UnresolvedIdentifier) identifier;
    return find(name.nameParts(), name.allowTemp());
  }

  private LogicalPlan list(ShowViews statement) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    if (Generation.isCurrent(statement.namespace())) {
      return list(statement, catalogs.currentCatalog(), catalogs.currentNamespace());
    }
    if (!(statement.namespace() instanceof UnresolvedNamespace)) {
      return null;
    }
    Seq parts = ((UnresolvedNamespace) statement.namespace()).multipartIdentifier();
    Tuple2 found = (Tuple2) analyzer().CatalogAndNamespace().unapply(parts).get();
    Object[] namespace = CollectionConverters.asJava((Seq) found._2()).toArray(new String[0]);
    return list(statement, (CatalogPlugin) found._1(), (String[]) namespace);
  }

  private static LogicalPlan list(ShowViews statement, CatalogPlugin catalog, String[] namespace) {
    return catalog instanceof NamedCatalog
        ? new ShowIcebergViews((NamedCatalog) catalog, namespace, statement.pattern(), statement.output()) : null;
  }

  /** What is said of a view that is there; a table of the name is left to Spark. */
  private LogicalPlan ofExisting(LogicalPlan plan) {
    LogicalPlan named = null;
    if (plan instanceof AlterViewAs) {
      named = ((AlterViewAs) plan).child();
    } else if (plan instanceof SetViewProperties) {
      named = ((SetViewProperties) plan).child();
    } else if (plan instanceof UnsetViewProperties) {
      named = ((UnsetViewProperties) plan).child();
    } else if (plan instanceof RenameTable && ((RenameTable) plan).isView()) {
      named = ((RenameTable) plan).child();
    } else if (plan instanceof DescribeRelation) {
      named = ((DescribeRelation) plan).relation();
    } else if (plan instanceof ShowCreateTable) {
      named = ((ShowCreateTable) plan).child();
    } else if (plan instanceof ShowTableProperties) {
      named = ((ShowTableProperties) plan).table();
    }
    Found view = named == null ? null : existing(named);
    if (view == null) {
      return null;
    }
    if (plan instanceof SetViewProperties) {
      return AlterIcebergView.set(view.catalog, view.ident, ((SetViewProperties) plan).properties());
    }
    if (plan instanceof UnsetViewProperties) {
      UnsetViewProperties statement = (UnsetViewProperties) plan;
      return AlterIcebergView.unset(view.catalog, view.ident, statement.propertyKeys(), statement.ifExists());
    }
    if (plan instanceof RenameTable) {
      return AlterIcebergView.rename(view.catalog, view.ident, renamed(view, ((RenameTable) plan).newName()));
    }
    if (plan instanceof AlterViewAs) {
      throw Failures.of("UnsupportedError: ALTER VIEW " + view.name() + " AS is not supported. Nothing was changed."
          + " Use CREATE OR REPLACE VIEW instead.", null);
    }
    return new ShowIcebergView(view.catalog, view.ident, plan);
  }

  private Identifier renamed(Found view, Seq name) {
    Tuple2 target = (Tuple2) analyzer().CatalogAndIdentifier().unapply(name).get();
    if (target._1() != view.catalog) {
      throw Failures.of("UnsupportedError: Cannot move the view " + view.name() + " from the catalog "
          + view.catalog.name() + " to " + ((CatalogPlugin) target._1()).name() + ". Nothing was changed. Name the catalog"
          + " in front of the new name, or create the view in the other one.", null);
    }
    return (Identifier) target._2();
  }

  private Found existing(LogicalPlan named) {
    Found found = null;
    if (named instanceof UnresolvedView) {
      found = find(((UnresolvedView) named).multipartIdentifier(), true);
    } else if (named instanceof UnresolvedTableOrView) {
      found = find(((UnresolvedTableOrView) named).multipartIdentifier(), true);
    }
    return found != null && found.isView() ? found : null;
  }

  /** Null if the name is that of a temporary view, or of another catalog. */
  private Found find(Seq name, boolean allowTemporary) {
    if (allowTemporary && session.sessionState().catalog().isTempView(name)) {
      return null;
    }
    Option found = analyzer().CatalogAndIdentifier().unapply(name);
    Tuple2 pair = found.isDefined() ? (Tuple2) found.get() : null;
    return pair != null && pair._1() instanceof IcebergCatalog
        ? new Found((IcebergCatalog) pair._1(), (Identifier) pair._2()) : null;
  }

  private Analyzer analyzer() {
    return session.sessionState().analyzer();
  }

  static final class Found {
    public final IcebergCatalog catalog;
    public final Identifier ident;

    Found(IcebergCatalog catalog, Identifier ident) {
      this.catalog = catalog;
      this.ident = ident;
    }

    public String name() {
      return catalog.source(ident).name();
    }

    public boolean isView() {
      Pointer pointer = ident.namespace().length == 1 ? catalog.source(ident).pointer() : null;
      return pointer != null && pointer.isView;
    }
  }
}
