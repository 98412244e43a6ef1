package hms_iceberg.bridge;

import java.lang.reflect.Field;
import java.util.concurrent.atomic.AtomicInteger;

/** What Hive's sessions in Spark's Thrift server are told before the first one begins. */
public final class ThriftSessions {
  private static final int REGISTERED = 2; // Hive's REG_FUNCS_DONE

  private ThriftSessions() {}

  /**
   * Sessions register the metastore's functions with Hive when they close, which no query uses: Spark finds them itself.
   * Some that close side by side wait for one another for ever.
   */
  public static void leaveOutFunctions() throws ReflectiveOperationException {
    Field state = Class.forName("org.apache.hadoop.hive.ql.metadata.Hive").getDeclaredField("didRegisterAllFuncs");
    state.setAccessible(true);
    ((AtomicInteger) state.get(null)).set(REGISTERED);
  }
}
