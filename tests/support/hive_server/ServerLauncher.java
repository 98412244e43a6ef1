import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/**
 * Starts Hive's own metastore, of Hive 3 or 4, when it has made the tables of locks, and ends it with its owner.
 *
 * Janino compiles it, so it keeps to plain Java without generics and lambdas. Arguments: the port, and the
 * SQL that makes the tables of locks of Hive 4, as its own jars no longer hold it.
 */
public final class ServerLauncher {
    public static void main(String[] args) throws Throwable {
        Thread watcher = new Thread(new OwnerWatcher(), "owner-watcher");
        watcher.setDaemon(true);
        watcher.start();
        try {
            createLockTables(MetastoreConf.newMetastoreConf(), args[1]);
            HiveMetaStore.main(new String[] {"-p", args[0]});
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void createLockTables(Configuration conf, String script) throws Throwable {
        Class maker;
        try {
            maker = Class.forName("org.apache.hadoop.hive.metastore.txn.TxnDbUtil");
        } catch (ClassNotFoundException ofHive4) {
            run(script, MetastoreConf.getVar(conf, MetastoreConf.ConfVars.CONNECT_URL_KEY));
            return;
        }
        Method prepare = maker.getMethod("prepDb", new Class[] {Configuration.class});
        prepare.invoke(null, new Object[] {conf});
    }

    private static void run(String script, String url) throws Exception {
        String text = new String(Files.readAllBytes(new File(script).toPath()), "UTF-8");
        String[] statements = text.replaceAll("(?m)^--.*$", "").split(";\\s*\n");
        Connection connection = DriverManager.getConnection(url);
        try {
            Statement statement = connection.createStatement();
            for (int i = 0; i < statements.length; i++) {
                statement.executeUpdate(statements[i]);
            }
        } finally {
            connection.close();
        }
    }

    private static final class OwnerWatcher implements Runnable {
        public void run() {
            InputStream in = System.in;
            try {
                while (in.read() != -1) {
                    continue;
                }
            } catch (IOException error) {
                // A broken pipe is an end as well.
            }
            System.exit(0);
        }
    }
}
