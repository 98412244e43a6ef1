package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task of a merge-on-read operation tells the driver: new files, and deleted positions of old ones. */
final class WrittenChanges implements WriterCommitMessage {
  private final WrittenFile[] files;
  private final String[] paths;
  private final byte[][] positions;

  WrittenChanges(List files, Map deleted) {
    this.files = (WrittenFile[]) files.toArray(new WrittenFile[0]);
    this.paths = new String[deleted.size()];
    this.positions = new byte[deleted.size()][];
    int next = 0;
    for (Iterator it = deleted.entrySet().iterator(); it.hasNext(); next++) {
      Map.Entry entry = (Map.Entry) it.next();
      paths[next] = entry.getKey().toString();
      positions[next] = ((PositionSet) entry.getValue()).portable();
    }
  }

  void put(ArrayNode added, ArrayNode deleted) {
    for (int i = 0; i < files.length; i++) {
      added.add(files[i].json());
    }
    for (int i = 0; i < paths.length; i++) {
      ObjectNode node = deleted.addObject();
      node.put("path", paths[i]);
      node.put("positions", Base64.getEncoder().encodeToString(positions[i]));
    }
  }

  void delete(Configuration conf) {
    for (int i = 0; i < files.length; i++) {
      WrittenFile.delete(files[i].location, conf);
    }
  }
}
