package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.read.ArrowPartition;
import hms_iceberg.bridge.wire.Json;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

/** Rows that Python wrote as Arrow, in parts. */
final class ArrowParts {
  private ArrowParts() {}

  /** Partitions of the rows; the file that has them is deleted. */
  static List of(JsonNode answer) {
    JsonNode parts = answer.get("parts");
    List partitions = new ArrayList();
    if (answer.get("path").isNull()) {
      for (int i = 0; i < parts.size(); i++) {
        partitions.add(new ArrowPartition(new byte[0], rows(parts, i)));
      }
      return partitions;
    }
    File file = new File(answer.get("path").asText());
    try {
      InputStream in = Files.newInputStream(file.toPath());
      try {
        for (int i = 0; i < parts.size(); i++) {
          partitions.add(new ArrowPartition(taken(in, Json.at(Json.at(parts, i), 0).asInt()), rows(parts, i)));
        }
      } finally {
        in.close();
      }
      return partitions;
    } catch (IOException e) {
      throw new IllegalStateException("Cannot read " + file + ", which the planner wrote: " + e.getMessage(), e);
    } finally {
      file.delete();
    }
  }

  private static int rows(JsonNode parts, int number) {
    return Json.at(Json.at(parts, number), 1).asInt();
  }

  private static byte[] taken(InputStream in, int size) throws IOException {
    byte[] part = new byte[size];
    int filled = 0;
    while (filled < size) {
      int count = in.read(part, filled, size - filled);
      if (count < 0) {
        throw new IOException("it ends after " + filled + " of " + size + " bytes");
      }
      filled += count;
    }
    return part;
  }
}
