package hms_iceberg.bridge.session;

import hms_iceberg.bridge.catalog.TableReads;
import hms_iceberg.bridge.source.IcebergSource;
import hms_iceberg.bridge.wire.Generation;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.DataStreamReader;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * spark.read.option("branch", "b").table("db.t") and select * from db.t with (`branch` = 'b'): they choose the
 * table's schema too, so they must be known before Spark resolves the name. spark.readStream.table("db.t") is
 * spark.readStream.format("iceberg").load("db.t").
 */
final class OptionsOfReads extends Rule {
  private static final String[] NAMES = {
    "snapshot-id", "as-of-timestamp", "branch", "tag", "start-snapshot-id", "end-snapshot-id",
    "start-timestamp", "end-timestamp", "identifier-columns", "compute-updates", "net-changes", "carryovers",
    "split-size", "file-open-cost"
  };

  private final SparkSession session;

  OptionsOfReads(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperators(new Resolve());
  }

  private static Map chosen(UnresolvedRelation relation) {
    Map chosen = new HashMap();
    for (int i = 0; i < NAMES.length; i++) {
      if (relation.options().containsKey(NAMES[i])) {
        chosen.put(NAMES[i], relation.options().get(NAMES[i]));
      }
    }
    return chosen;
  }

  /** The version or time that Spark leaves to us; null if there is none. */
  private static Object travel(UnresolvedRelation relation) {
    return relation.isStreaming() || Generation.travelsByOptions() ? null : IcebergSource.travel(relation.options());
  }

  final class Resolve extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      return plan instanceof UnresolvedRelation
          && (((UnresolvedRelation) plan).isStreaming() || !chosen((UnresolvedRelation) plan).isEmpty()
              || travel((UnresolvedRelation) plan) != null)
          && !session.sessionState().catalog().isTempView(((UnresolvedRelation) plan).multipartIdentifier());
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      UnresolvedRelation relation = (UnresolvedRelation) plan;
      List parts = CollectionConverters.asJava(relation.multipartIdentifier());
      Object travel = travel(relation);
      Table table = TableReads.byName(
          session, (String[]) parts.toArray(new String[0]), IcebergSource.version(travel), IcebergSource.micros(travel),
          chosen(relation));
      if (table == null) {
        return plan;
      }
      return relation.isStreaming()
          ? stream(parts, relation.options()) : DataSourceV2Relation.create(table, Option.empty(), Option.empty());
    }

    private Object stream(List parts, Map options) {
      StringBuilder name = new StringBuilder();
      for (int i = 0; i < parts.size(); i++) {
        name.append(i == 0 ? "`" : ".`").append(((String) parts.get(i)).replace("`", "``")).append('`');
      }
      // By its class: with an Iceberg JAR beside us, "iceberg" is that JAR's.
      DataStreamReader reader = session.readStream().format(IcebergSource.class.getName()).options(options);
      return ((Dataset) reader.load(name.toString())).queryExecution().analyzed();
    }
  }
}
