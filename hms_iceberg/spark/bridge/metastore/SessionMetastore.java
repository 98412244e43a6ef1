package hms_iceberg.bridge.metastore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.Planner;
import java.io.IOException;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The session's own metastore as a catalog of Python, for what is committed. Reads go through Spark's own client of it
 * and never open this.
 */
public final class SessionMetastore {
  private static final String TOKEN_OF_SPARK = "hive.server2.delegation.token";
  private static final String TOKEN = "hive.metastore.delegation-token";

  private SessionMetastore() {}

  /** What Python calls it. The settings are those that Spark's client of the metastore was made of. */
  public static JsonNode number(Planner planner, String name, Map options) {
    SparkSession session = (SparkSession) SparkSession.active();
    ObjectNode question = Planner.question("session-catalog");
    question.put("name", name);
    question.set("options", Json.MAPPER.valueToTree(options));
    question.put("warehouse", session.sessionState().conf().warehousePath());
    question.set("hive", settings(session));
    return planner.ask(question).header().get("catalog");
  }

  /**
   * Hive's settings as spark.hadoop.*, spark.hive.* and hive-site.xml give them, and who it is that asks. A SET of
   * hive.* in a session is none of them: its metastore would be opened once more.
   */
  private static ObjectNode settings(SparkSession session) {
    ObjectNode settings = Json.MAPPER.createObjectNode();
    add(settings, session.sharedState().hadoopConf(), "hive.");
    add(settings, session.sessionState().newHadoopConf(), "iceberg.");
    try {
      UserGroupInformation user = UserGroupInformation.getCurrentUser();
      settings.put("ugi", user.getShortUserName());
      Token token = user.getCredentials().getToken(new Text(TOKEN_OF_SPARK));
      if (token != null) {
        settings.put(TOKEN, token.encodeToUrlString());
      }
    } catch (IOException e) {
      throw Failures.of("ConfigurationError: cannot tell as whom to call the metastore: " + e.getMessage(), e);
    }
    return settings;
  }

  private static void add(ObjectNode settings, Configuration hadoop, String prefix) {
    for (Iterator it = hadoop.iterator(); it.hasNext();) {
      String key = (String) ((Map.Entry) it.next()).getKey();
      if (key.startsWith(prefix)) {
        settings.put(key, hadoop.get(key));
      }
    }
  }
}
