import java.io.File;
import java.io.PrintStream;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * Starts a ResourceManager and a NodeManager, and ends with its owner, who closes standard input.
 *
 * Janino compiles it, so it keeps to plain Java. Its argument is a file of settings. It answers the addresses for
 * clients and for the masters of applications as soon as the NodeManager has told of itself.
 */
public final class YarnLauncher {
    public static void main(String[] args) throws Throwable {
        PrintStream answers = System.out;
        System.setOut(System.err);
        try {
            Configuration conf = new YarnConfiguration();
            conf.addResource(new File(args[0]).toURI().toURL());
            if (UserGroupInformation.isSecurityEnabled()) { // servers of this cluster do not log in themselves
                UserGroupInformation.loginUserFromKeytab(conf.get(YarnConfiguration.RM_PRINCIPAL),
                    conf.get(YarnConfiguration.RM_KEYTAB));
            }
            MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1);
            cluster.init(conf);
            cluster.start();
            if (!cluster.waitForNodeManagersToConnect(120000L)) {
                throw new IllegalStateException("The NodeManager did not connect");
            }
            Configuration used = cluster.getConfig();
            answers.println("ok " + used.get(YarnConfiguration.RM_ADDRESS) + " "
                + used.get(YarnConfiguration.RM_SCHEDULER_ADDRESS));
            while (System.in.read() != -1) {
                Thread.yield();
            }
            cluster.stop();
            System.exit(0);
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
    }
}
