package hms_iceberg.bridge.output;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.wire.Json;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkFiles;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.SimplePythonFunction;

/**
 * A Python process beside a task, which writes its files where Spark's JVM has no writer for their format. A message is
 * JSON and bytes, each with its length before it; so is the answer, without bytes.
 */
public final class PythonWriter {
  /** Says what this Python lacks, as an answer to the first message. */
  private static final String PROGRAM = String.join("\n", new String[] {
      "try:",
      "    from hms_iceberg.spark.writing.worker import main",
      "except ImportError as error:",
      "    import json, sys",
      "    for _ in range(2):",
      "        sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), 'big'))",
      "    told = ('MissingDependencyError: Python writes files of Iceberg tables with nanoseconds or shapes, and that of '",
      "            f'this executor ({sys.executable}) cannot import what it needs for that ({error}). Install the same '",
      "            'hms_iceberg[spark] on all executors as on the driver, or set spark.pyspark.python to a Python that '",
      "            'has it.')",
      "    text = json.dumps({'error': told}).encode()",
      "    sys.stdout.buffer.write(len(text).to_bytes(4, 'big') + text)",
      "    sys.exit(1)",
      "main()"});

  /** Processes without a task: to start one costs more than to write a small file. They end after a minute. */
  private static final Map IDLE = new HashMap();

  private final List kind;
  private final String python;
  private final Process process;
  private final DataOutputStream to;
  private final DataInputStream from;
  private boolean isBroken;

  private PythonWriter(Start start, String path) throws IOException {
    ProcessBuilder builder = new ProcessBuilder(
        new String[] {start.python, "-c", PROGRAM});
    builder.environment().putAll(start.environment);
    builder.environment().put("PYTHONPATH", path);
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    this.kind = kind(start, path);
    this.python = start.python;
    this.process = builder.start();
    this.to = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1048576));
    this.from = new DataInputStream(new BufferedInputStream(process.getInputStream()));
  }

  /** A process for a task: one that is idle and was started in the same way, or a new one. */
  public static PythonWriter begun(Start start) throws IOException {
    String path = start.pythonPath();
    PythonWriter writer = idle(kind(start, path));
    while (writer != null) {
      try {
        writer.ask("begin", -1, start.job);
        return writer;
      } catch (IOException e) { // it has just ended; a new one tells what is wrong
        writer.end();
        writer = idle(kind(start, path));
      }
    }
    writer = new PythonWriter(start, path);
    writer.ask("begin", -1, start.job);
    return writer;
  }

  private static List kind(Start start, String path) {
    List kind = new ArrayList();
    kind.add(start.python);
    kind.add(path);
    kind.add(start.environment);
    return kind;
  }

  private static synchronized PythonWriter idle(List kind) {
    List some = (List) IDLE.get(kind);
    return some == null || some.isEmpty() ? null : (PythonWriter) some.remove(some.size() - 1);
  }

  private static synchronized void keep(PythonWriter writer) {
    List some = (List) IDLE.get(writer.kind);
    if (some == null) {
      some = new ArrayList();
      IDLE.put(writer.kind, some);
    }
    for (int i = some.size() - 1; i >= 0; i--) {
      if (!((PythonWriter) some.get(i)).process.isAlive()) {
        some.remove(i);
      }
    }
    some.add(writer);
  }

  public JsonNode ask(String call, int file, byte[] data) throws IOException {
    return ask(call, file, null, data);
  }

  public JsonNode ask(String call, int file, String location, byte[] data) throws IOException {
    ObjectNode message = JsonNodeFactory.instance.objectNode();
    message.put("call", call);
    message.put("file", file);
    message.put("location", location);
    JsonNode answer;
    boolean done = false;
    try {
      byte[] text = message.toString().getBytes(StandardCharsets.UTF_8);
      to.writeInt(text.length);
      to.write(text);
      to.writeInt(data.length);
      to.write(data);
      to.flush();
      byte[] answered = new byte[from.readInt()];
      from.readFully(answered);
      answer = Json.read(new String(answered, StandardCharsets.UTF_8));
      done = !answer.has("error");
    } catch (IOException e) {
      throw new IOException("UnsupportedError: Python writes files of Iceberg tables with nanoseconds or shapes, and its"
          + " process (" + python + ") ended (its error is in this executor's stderr). Install the same hms_iceberg[spark]"
          + " on all executors as on the driver, or set spark.pyspark.python to a Python that has it.", e);
    } finally {
      isBroken |= !done;
    }
    if (answer.has("error")) {
      throw new IOException(answer.get("error").asText());
    }
    return answer;
  }

  /** Gives up the files that are open, and leaves the process to the next task; one that failed ends. */
  public void close() {
    if (!isBroken) {
      try {
        ask("rest", -1, new byte[0]);
        keep(this);
        return;
      } catch (IOException e) {
        // It ends.
      }
    }
    end();
  }

  private void end() {
    try {
      to.close(); // the process ends with its input
      from.close();
      if (!process.waitFor(10, java.util.concurrent.TimeUnit.SECONDS)) {
        process.destroy();
      }
    } catch (IOException e) {
      process.destroy();
    } catch (InterruptedException e) {
      process.destroy();
      Thread.currentThread().interrupt();
    }
  }

  /** How the process is started, and what it is told first. */
  public static final class Start implements Serializable {
    public final String python;
    final Map environment;
    final byte[] job;

    Start(SimplePythonFunction worker, byte[] job) {
      this.python = worker.pythonExec();
      this.environment = new HashMap(worker.envVars());
      List files = worker.pythonIncludes();
      this.environment.put("HMS_ICEBERG_PY_FILES", String.join(File.pathSeparator, files));
      this.job = job;
    }

    /** As Spark has it for its own workers: its own path, that of the driver, of this executor, and added files. */
    String pythonPath() {
      StringBuilder path = new StringBuilder(PythonUtils.sparkPythonPath());
      String[] names = ((String) environment.get("HMS_ICEBERG_PY_FILES")).split(File.pathSeparator);
      for (int i = 0; i < names.length; i++) {
        if (!names[i].isEmpty()) {
          path.append(File.pathSeparator).append(new File(SparkFiles.getRootDirectory(), names[i]));
        }
      }
      String own = (String) environment.get("PYTHONPATH");
      String here = System.getenv("PYTHONPATH");
      return path + (own == null ? "" : File.pathSeparator + own) + (here == null ? "" : File.pathSeparator + here);
    }
  }
}
