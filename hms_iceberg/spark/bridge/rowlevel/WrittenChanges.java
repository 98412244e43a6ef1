package hms_iceberg.bridge.rowlevel;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.deletes.PositionSet;
import hms_iceberg.bridge.output.WrittenFiles;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** What a task of a merge-on-read operation tells the driver: new files, and deleted positions of old ones. */
final class WrittenChanges extends WrittenFiles {
  private final String[] paths;
  private final byte[][] positions;

  WrittenChanges(List files, Map deleted) {
    super(files);
    this.paths = new String[deleted.size()];
    this.positions = new byte[deleted.size()][];
    int next = 0;
    for (Iterator it = deleted.entrySet().iterator(); it.hasNext(); next++) {
      Map.Entry entry = (Map.Entry) it.next();
      paths[next] = entry.getKey().toString();
      positions[next] = ((PositionSet) entry.getValue()).portable();
    }
  }

  void putDeleted(ArrayNode deleted) {
    for (int i = 0; i < paths.length; i++) {
      ObjectNode node = deleted.addObject();
      node.put("path", paths[i]);
      node.put("positions", Base64.getEncoder().encodeToString(positions[i]));
    }
  }
}
