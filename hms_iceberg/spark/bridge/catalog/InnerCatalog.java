package hms_iceberg.bridge.catalog;

import hms_iceberg.bridge.wire.Failures;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogExtension;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Catalogs;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Before a session's first query, puts the session catalog that the user chose between ours and Spark's. Spark itself
 * gives a session catalog nothing but its own to delegate to, by a method that is final.
 */
public final class InnerCatalog extends Rule {
  /** The setting that keeps what the user chose. */
  public static final String CLASS = "spark.hms_iceberg.inner-session-catalog";
  public static final String BUILT_IN = "builtin";

  private final SparkSession session;

  public InnerCatalog(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    CatalogPlugin catalog = session.sessionState().catalogManager().v2SessionCatalog();
    if (catalog instanceof SessionCatalog) {
      ((SessionCatalog) catalog).join(session.sessionState().conf());
    }
    return plan;
  }

  /** The user's catalog over Spark's, or Spark's alone if the user chose none. */
  public static CatalogPlugin over(CatalogPlugin sparks, SQLConf conf) {
    String chosen = conf.getConfString(CLASS, BUILT_IN);
    if (BUILT_IN.equals(chosen) || !NamedCatalogs.isHere(chosen)) {
      return sparks;
    }
    SQLConf own = (SQLConf) conf.clone();
    own.setConfString("spark.sql.catalog." + sparks.name(), chosen);
    try {
      CatalogPlugin users = Catalogs.load(sparks.name(), own);
      if (users instanceof CatalogExtension) {
        ((CatalogExtension) users).setDelegateCatalog(sparks);
      }
      return users;
    } catch (Exception e) {
      throw Failures.unchecked(e);
    }
  }
}
