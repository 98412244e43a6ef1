package hms_iceberg.bridge.session;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.URL;
import java.util.Enumeration;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.NonClosableMutableURLClassLoader;
import org.apache.spark.sql.internal.SharedState;

/** Spark's Thrift server, so that the sessions of its clients do each other no harm when they close. */
public final class ThriftSessions {
  private static final int REGISTERED = 2; // Hive's REG_FUNCS_DONE

  private ThriftSessions() {}

  /** Called before the server starts. */
  public static void prepare(SparkSession session) throws ReflectiveOperationException {
    leaveOutFunctions();
    shield(session.sharedState());
  }

  /**
   * A session of Hive that ends closes its class loader and all that are above it (`SessionState.close`). Spark gives it the
   * one of all sessions, above which is the driver's: no later client would find a class that is not loaded by then.
   */
  private static void shield(SharedState state) throws ReflectiveOperationException {
    Field loader = SharedState.class.getDeclaredField("jarClassLoader");
    loader.setAccessible(true);
    loader.set(state, new NonClosableMutableURLClassLoader(new Shielded(state.jarClassLoader())));
  }

  /**
   * Sessions register the metastore's functions with Hive when they close, which no query uses: Spark finds them itself.
   * Some that close side by side wait for one another for ever.
   */
  private static void leaveOutFunctions() throws ReflectiveOperationException {
    Field state = Class.forName("org.apache.hadoop.hive.ql.metadata.Hive").getDeclaredField("didRegisterAllFuncs");
    state.setAccessible(true);
    ((AtomicInteger) state.get(null)).set(REGISTERED);
  }

  /** Finds what another class loader finds, and names none above it. */
  static final class Shielded extends ClassLoader {
    private final ClassLoader shared;

    Shielded(ClassLoader shared) {
      super(null);
      this.shared = shared;
    }

    protected Class findClass(String name) throws ClassNotFoundException {
      return shared.loadClass(name);
    }

    protected URL findResource(String name) {
      return shared.getResource(name);
    }

    protected Enumeration findResources(String name) throws IOException {
      return shared.getResources(name);
    }
  }
}
