import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringWriter;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.server.datanode.DataNodeFaultInjector;
import org.apache.hadoop.hdfs.server.namenode.NameNodeAdapter;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.delegation.AbstractDelegationTokenSecretManager;
import org.apache.hadoop.util.ToolRunner;

/**
 * Starts an HDFS of two NameNodes and one DataNode, does what is said on standard input, and ends with its owner.
 *
 * Janino compiles it, so it keeps to plain Java without generics and lambdas. Arguments: the folder, and a file of
 * settings. It first answers the ports of the NameNodes. Each line of input is a command of words with tabs between
 * them; each answer is a line, which starts with "ok" or "failed".
 */
public final class ClusterLauncher {
    private static MiniDFSCluster cluster;

    public static void main(String[] args) throws Throwable {
        PrintStream answers = System.out;
        System.setOut(System.err);
        try {
            Configuration conf = new Configuration();
            conf.addResource(new File(args[1]).toURI().toURL());
            conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
            UserGroupInformation.setConfiguration(conf);
            DataNodeFaultInjector.set(new ReportsFirst());
            MiniDFSNNTopology topology = MiniDFSNNTopology.simpleHATopology();
            cluster = new MiniDFSCluster.Builder(conf).nnTopology(topology).numDataNodes(1).build();
            cluster.waitActive();
            cluster.transitionToActive(0);
            answers.println("ok " + cluster.getNameNodePort(0) + " " + cluster.getNameNodePort(1));
            BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
            String line = commands.readLine();
            while (line != null) {
                answers.println(answer(line.split("\t")));
                line = commands.readLine();
            }
            System.exit(0);
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    /**
     * The NameNode hears of a block before its client does. Else, half of the files would be closed a moment too soon,
     * and their writers would ask again after half a second.
     */
    private static final class ReportsFirst extends DataNodeFaultInjector {
        public void delayAckLastPacket() {
            try {
                Thread.sleep(8);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static String answer(String[] words) {
        try {
            if (words[0].equals("active")) {
                return "ok " + (cluster.getNamesystem(0).isInStandbyState() ? 1 : 0);
            }
            run(words);
            return "ok";
        } catch (Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            return "failed " + text.toString().replace('\n', ' ');
        }
    }

    private static void run(String[] words) throws Throwable {
        if (words[0].equals("activate")) {
            int active = Integer.parseInt(words[1]);
            cluster.transitionToStandby(1 - active);
            cluster.transitionToActive(active);
            while (cluster.getNamesystem(active).isInSafeMode()) {
                Thread.sleep(50);
            }
        } else if (words[0].equals("stop-namenode")) {
            cluster.shutdownNameNode(Integer.parseInt(words[1]));
        } else if (words[0].equals("start-namenode")) {
            cluster.restartNameNode(Integer.parseInt(words[1]), false);
        } else if (words[0].equals("restart-datanode")) {
            cluster.restartDataNode(0, true);
            cluster.waitActive(0);
        } else if (words[0].equals("mkdirs")) {
            cluster.getFileSystem(0).mkdirs(new Path(words[1]));
        } else if (words[0].equals("setowner")) {
            cluster.getFileSystem(0).setOwner(new Path(words[1]), words[2], null);
        } else if (words[0].equals("snapshot")) {
            cluster.getFileSystem(0).allowSnapshot(new Path(words[1]));
            cluster.getFileSystem(0).createSnapshot(new Path(words[1]), words[2]);
        } else if (words[0].equals("encryption-zone")) {
            cluster.getFileSystem(0).mkdirs(new Path(words[1]));
            DFSTestUtil.createKey("key", cluster, 0, cluster.getConfiguration(0));
            cluster.getFileSystem(0).createEncryptionZone(new Path(words[1]), "key");
        } else if (words[0].equals("write")) {
            DFSTestUtil.writeFile(cluster.getFileSystem(0), new Path(words[1]), words[2]);
        } else if (words[0].equals("put")) {
            cluster.getFileSystem(0).copyFromLocalFile(new Path(words[1]), new Path(words[2]));
        } else if (words[0].equals("get")) {
            cluster.getFileSystem(0).copyToLocalFile(new Path(words[1]), new Path(words[2]));
        } else if (words[0].equals("dfsadmin")) {
            String[] rest = (String[]) Arrays.copyOfRange(words, 2, words.length);
            Configuration conf = new Configuration(cluster.getConfiguration(0));
            conf.set("fs.defaultFS", "hdfs://127.0.0.1:" + cluster.getNameNodePort(Integer.parseInt(words[1])));
            int result = ToolRunner.run(new DFSAdmin(conf), rest);
            if (result != 0) {
                throw new IllegalStateException("dfsadmin answered " + result);
            }
        } else if (words[0].equals("setpermission")) {
            cluster.getFileSystem(0).setPermission(new Path(words[1]), new FsPermission(words[2]));
        } else if (words[0].equals("token")) {
            Credentials tokens = new Credentials();
            for (int number = 6; number < words.length; number++) {
                Token token = new Token();
                token.decodeFromUrlString(words[number]);
                tokens.addToken(new Text("further-" + number), token);
            }
            writeToken(words[1], words[2], new File(words[3]), URI.create(words[4]), new File(words[5]), tokens);
        } else if (words[0].equals("lifetime-of-tokens")) {
            for (int number = 0; number < 2; number++) {
                Object tokens = NameNodeAdapter.getDtSecretManager(cluster.getNamesystem(number));
                set(tokens, "tokenRenewInterval", Long.parseLong(words[1]));
                set(tokens, "tokenMaxLifetime", Long.parseLong(words[2]));
            }
        } else {
            throw new IllegalArgumentException(words[0]);
        }
    }

    private static void set(Object tokens, String name, long milliseconds) throws Throwable {
        Field field = AbstractDelegationTokenSecretManager.class.getDeclaredField(name);
        field.setAccessible(true);
        field.setLong(tokens, milliseconds);
    }

    /** A file with the token that a user of a keytab gets for a file system by the settings of a client. */
    private static void writeToken(String user, String keytab, File settings, final URI place, File file,
            final Credentials tokens)
            throws Throwable {
        final Configuration conf = new Configuration();
        conf.addResource(settings.toURI().toURL());
        UserGroupInformation.loginUserFromKeytabAndReturnUGI(user, keytab).doAs(new PrivilegedExceptionAction() {
            public Object run() throws Exception {
                FileSystem files = FileSystem.newInstance(place, conf);
                files.addDelegationTokens("nobody", tokens);
                files.close();
                return null;
            }
        });
        tokens.writeTokenStorageFile(new Path(file.toURI()), conf);
        Path other = new Path(new File(file.getPath() + ".protobuf").toURI());
        tokens.writeTokenStorageFile(other, conf, Credentials.SerializedFormat.PROTOBUF);
    }
}
