package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.slf4j.LoggerFactory;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What CACHE TABLE and DataFrame.cache() keep of a table is made anew when the table changes. From Spark 4.1 on, a name
 * is answered by what is cached of it, whatever has been committed since; Spark itself sees to that for the name that a
 * statement writes to, but not for procedures, other names of the table (t.branch_main, t.files, ice.db.t) and its own
 * catalog's statements about it. Versions of the past stay cached.
 */
public final class CachedTables {
  private CachedTables() {}

  /** The question has changed the table that it names. That is done, and nothing that goes wrong here changes it. */
  public static void refresh(ObjectNode question) {
    boolean interrupted = Thread.interrupted(); // a stream that is stopped has nevertheless committed
    try {
      SparkSession session = (SparkSession) SparkSession.active();
      CacheManager cache = session.sharedState().cacheManager();
      if (!cache.isEmpty() && SparkVersions.answersNamesByCache(cache)) {
        for (Iterator it = names(cache, question).iterator(); it.hasNext();) {
          SparkVersions.recache(cache, session, CollectionTools.seq((List) it.next()));
        }
      }
    } catch (Exception e) {
      LoggerFactory.getLogger(CachedTables.class).warn(
          "What is cached of a table that has changed could not be made anew: REFRESH TABLE does it", e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Whether the name of the table that a question is about is answered by what is cached. */
  public static boolean answer(ObjectNode question) {
    CacheManager cache = ((SparkSession) SparkSession.active()).sharedState().cacheManager();
    try {
      return !cache.isEmpty() && SparkVersions.answersNamesByCache(cache) && !names(cache, question).isEmpty();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark is not supported: " + cache.getClass(), e);
    }
  }

  /** The names, with their catalogs, by which cached plans read the table. */
  private static Set names(CacheManager cache, JsonNode question) throws ReflectiveOperationException {
    Field cached = CacheManager.class.getDeclaredField("cachedData");
    cached.setAccessible(true);
    Set names = new LinkedHashSet();
    for (Iterator it = CollectionConverters.asJava((Seq) cached.get(cache)).iterator(); it.hasNext();) {
      LogicalPlan plan = ((CachedData) it.next()).plan();
      for (Iterator leaves = CollectionConverters.asJava(plan.collectLeaves()).iterator(); leaves.hasNext();) {
        Object leaf = leaves.next();
        List name = leaf instanceof DataSourceV2Relation ? name((DataSourceV2Relation) leaf, question) : null;
        if (name != null) {
          names.add(name);
        }
      }
    }
    return names;
  }

  /** Null if it is none of an Iceberg catalog, or another table's. */
  private static List name(DataSourceV2Relation relation, JsonNode question) {
    if (relation.catalog().isEmpty() || relation.identifier().isEmpty()
        || !(relation.catalog().get() instanceof IcebergCatalog)) {
      return null;
    }
    Identifier ident = (Identifier) relation.identifier().get();
    List parts = new ArrayList(Arrays.asList(ident.namespace()));
    parts.add(ident.name());
    boolean same = question.hasNonNull("path") ? question.get("path").asText().equals(ident.name())
        : parts.size() > 1 && is(question, "namespace", parts.get(0)) && is(question, "table", parts.get(1));
    parts.add(0, ((CatalogPlugin) relation.catalog().get()).name());
    return same ? parts : null;
  }

  private static boolean is(JsonNode question, String key, Object part) {
    return question.hasNonNull(key) && question.get(key).asText().equalsIgnoreCase((String) part);
  }
}
