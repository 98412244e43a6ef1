import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.FileFormatProxy;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.PartitionExpressionProxy;
import org.apache.hadoop.hive.metastore.TServerSocketKeepAlive;
import org.apache.hadoop.hive.metastore.TUGIBasedProcessor;
import org.apache.hadoop.hive.metastore.api.FileMetadataExprType;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.metastore.txn.TxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.thrift.TUGIContainingTransport;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportFactory;

/**
 * Serves the Hive Metastore of PySpark's jars on one address and tells its owner the port.
 *
 * Hive's own main class binds every interface, does not create the lock tables, expires no stale lock and outlives
 * its owner. This class builds the same server out of the same parts, and differs in these points only. Janino
 * compiles it when it is started, so it keeps to plain Java without generics and lambdas.
 *
 * Arguments: host, port (0 for a free one), the seconds between two searches for expired locks, and how the database
 * came to be: "as-is", "from-template" (a copy of a prepared empty one) or a folder, in which a new database is kept as
 * such a template. It ends when standard input does, unless a byte came by it, with which the owner releases it.
 */
public final class MetastoreLauncher {
    public static void main(String[] args) {
        try {
            serve(args);
        } catch (Throwable error) { // Derby's threads would keep a failed server alive
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void serve(String[] args) throws Throwable {
        endWithOwner();
        // Before the slow part, so that a taken port fails at once and a free one stays ours.
        ServerSocket socket = new ServerSocket();
        socket.setReuseAddress(true);
        socket.bind(new InetSocketAddress(InetAddress.getByName(args[0]), Integer.parseInt(args[1])), 128);

        // Hive looks for the class of expressions in the loader of the thread, which its workers inherit.
        Thread.currentThread().setContextClassLoader(MetastoreLauncher.class.getClassLoader());
        HiveConf conf = new HiveConf(MetastoreLauncher.class);
        conf.setVar(HiveConf.ConfVars.METASTORE_EXPRESSION_PROXY_CLASS, NoExpressions.class.getName());
        Runtime.getRuntime().addShutdownHook(new Thread(new DerbyShutdown()));
        connect(conf).close(); // prepDb below hides why a database cannot be opened
        createLockTables(conf);
        if ("from-template".equals(args[3])) {
            moveDefaultDatabase(conf);
        }
        HiveMetaStore.HMSHandler base = new HiveMetaStore.HMSHandler("hms-iceberg embedded metastore", conf, false);
        IHMSHandler handler = HiveMetaStore.newRetryingHMSHandler(base, conf);
        if (!"as-is".equals(args[3]) && !"from-template".equals(args[3])) {
            keepTemplate(conf, new File(args[3]));
        }
        startHouseKeeper(conf, Long.parseLong(args[2]));
        TThreadPoolServer server = newServer(socket, handler, conf);
        System.out.println("READY " + socket.getLocalPort());
        System.out.flush();
        System.setOut(System.err); // nobody reads the pipe any more
        server.serve();
    }

    private static TThreadPoolServer newServer(ServerSocket socket, IHMSHandler handler, HiveConf conf)
            throws Exception {
        int limit = (int) conf.getLongVar(HiveConf.ConfVars.METASTORESERVERMAXMESSAGESIZE);
        TProcessor processor = new TUGIBasedProcessor(handler);
        TTransportFactory transports = (TTransportFactory) new TUGIContainingTransport.Factory();
        TThreadPoolServer.Args args = new TThreadPoolServer.Args(new TServerSocketKeepAlive(new TServerSocket(socket)));
        args.processor(processor);
        args.transportFactory(transports);
        args.protocolFactory(new TBinaryProtocol.Factory());
        args.inputProtocolFactory(new TBinaryProtocol.Factory(true, true, limit, limit));
        args.minWorkerThreads(conf.getIntVar(HiveConf.ConfVars.METASTORESERVERMINTHREADS));
        args.maxWorkerThreads(conf.getIntVar(HiveConf.ConfVars.METASTORESERVERMAXTHREADS));
        TThreadPoolServer server = new TThreadPoolServer(args);
        server.setServerEventHandler(new ConnectionCleaner());
        return server;
    }

    /** Creates the tables of locks and transactions, which Hive makes only where a test asks for them. */
    private static void createLockTables(HiveConf conf) throws Exception {
        try {
            TxnDbUtil.prepDb(conf);
        } catch (SQLException error) {
            if (!"X0Y32".equals(error.getSQLState())) { // they exist
                throw error;
            }
        }
    }

    private static Connection connect(HiveConf conf) throws SQLException {
        return DriverManager.getConnection(conf.getVar(HiveConf.ConfVars.METASTORECONNECTURLKEY));
    }

    /** A template was made for another warehouse: this one's folder becomes the default database's. */
    private static void moveDefaultDatabase(HiveConf conf) throws SQLException {
        Connection connection = connect(conf);
        try {
            PreparedStatement update = connection.prepareStatement(
                    "UPDATE DBS SET DB_LOCATION_URI = ? WHERE NAME = 'default'");
            update.setString(1, conf.getVar(HiveConf.ConfVars.METASTOREWAREHOUSE));
            update.executeUpdate();
        } finally {
            connection.close();
        }
    }

    /** Copies the database, whole or not at all, while it is still empty. */
    private static void keepTemplate(HiveConf conf, File target) {
        File unfinished = new File(target.getPath() + "-" + System.nanoTime());
        try {
            Connection connection = connect(conf);
            try {
                CallableStatement backup = connection.prepareCall("CALL SYSCS_UTIL.SYSCS_BACKUP_DATABASE(?)");
                backup.setString(1, unfinished.getPath());
                backup.execute();
            } finally {
                connection.close();
            }
            if (!unfinished.renameTo(target)) { // another process was first: its copy is as good
                delete(unfinished);
            }
        } catch (SQLException error) {
            System.err.println("No template was kept: " + error.getMessage());
        }
    }

    private static void delete(File file) {
        File[] children = file.listFiles();
        for (int i = 0; children != null && i < children.length; i++) {
            delete(children[i]);
        }
        file.delete();
    }

    /** Expires locks whose holder stopped its heartbeats; Hive does so only beside a compactor. */
    private static void startHouseKeeper(HiveConf conf, long seconds) {
        ScheduledExecutorService executor = Executors.newScheduledThreadPool(1, new DaemonThreads());
        executor.scheduleWithFixedDelay(new LockReaper(conf), seconds, seconds, TimeUnit.SECONDS);
    }

    private static void endWithOwner() {
        Thread watcher = new Thread(new OwnerWatcher(), "owner-watcher");
        watcher.setDaemon(true);
        watcher.start();
    }

    /** Ends the process when the owner closes standard input or dies, before it released the process. */
    private static final class OwnerWatcher implements Runnable {
        public void run() {
            try {
                if (System.in.read() != -1) {
                    return;
                }
            } catch (IOException error) {
                // A broken pipe is an end as well.
            }
            System.exit(0);
        }
    }

    private static final class DaemonThreads implements ThreadFactory {
        public Thread newThread(Runnable task) {
            Thread thread = new Thread(task, "lock-reaper");
            thread.setDaemon(true);
            return thread;
        }
    }

    private static final class LockReaper implements Runnable {
        private final HiveConf conf;

        LockReaper(HiveConf conf) {
            this.conf = conf;
        }

        public void run() {
            try {
                TxnStore store = TxnUtils.getTxnStore(conf);
                store.performTimeOuts();
            } catch (RuntimeException error) {
                System.err.println("Search for expired locks failed: " + error); // the next one may do better
            }
        }
    }

    /**
     * Refuses expressions of partitions as bytes: Hive decodes them with Kryo, which makes objects of any class that the
     * bytes name, so that every user of the machine could run code here. Spark and this package send filters as text.
     */
    public static final class NoExpressions implements PartitionExpressionProxy {
        public String convertExprToFilter(byte[] expression) throws MetaException {
            throw refusal();
        }

        public boolean filterPartitionsByExpr(
                List names, List types, byte[] expression, String defaultName, List partitions) throws MetaException {
            throw refusal();
        }

        public FileMetadataExprType getMetadataType(String inputFormat) {
            return null;
        }

        public FileFormatProxy getFileFormatProxy(FileMetadataExprType type) {
            return null;
        }

        public SearchArgument createSarg(byte[] expression) {
            throw new UnsupportedOperationException(refusal().getMessage());
        }

        private static MetaException refusal() {
            return new MetaException("The embedded metastore takes no serialized expressions; send the filter as text");
        }
    }

    /** Writes Derby's last pages, so that the next start needs no recovery. */
    private static final class DerbyShutdown implements Runnable {
        public void run() {
            try {
                DriverManager.getConnection("jdbc:derby:;shutdown=true");
            } catch (SQLException error) {
                // Derby reports a clean shutdown as an error.
            }
        }
    }

    /** Closes what the metastore keeps for each connection's thread. */
    private static final class ConnectionCleaner implements TServerEventHandler {
        public void preServe() {
        }

        public ServerContext createContext(TProtocol input, TProtocol output) {
            return null;
        }

        public void deleteContext(ServerContext context, TProtocol input, TProtocol output) {
            try {
                Method clean = HiveMetaStore.class.getDeclaredMethod("cleanupRawStore", new Class[0]);
                clean.setAccessible(true);
                clean.invoke(null, new Object[0]);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }

        public void processContext(ServerContext context, TTransport input, TTransport output) {
        }
    }
}
