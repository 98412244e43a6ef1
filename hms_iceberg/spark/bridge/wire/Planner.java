package hms_iceberg.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.function.Function;
import org.apache.spark.api.python.SimplePythonFunction;

/**
 * Asks Python, on behalf of one extended session and of those made of it. A question and its answer cross once a table
 * or once a scan, never once a file.
 */
final class Planner {
  // Py4J keeps a connection for every JVM thread that ever called Python, and Spark plans many a query in a new
  // thread: these few call on behalf of all.
  private static final ExecutorService CALLERS = Executors.newFixedThreadPool(4, new DaemonThreads());

  // What may take minutes (a procedure, a commit that waits for a lock) holds up no question about a read.
  private static final ExecutorService LONG_CALLERS = Executors.newFixedThreadPool(32, new DaemonThreads());
  private static final Set LONG = new HashSet(Arrays.asList(
      new String[] {"call-procedure", "commit-write", "commit-rows", "delete-where", "commit-staged"}));

  private static final BoundedCache ANSWERS = new BoundedCache(Runtime.getRuntime().maxMemory() / 32);

  final String id;
  final Map properties;
  private final Function python;
  private final SimplePythonFunction worker;

  Planner(String id, Map properties, Function python, SimplePythonFunction worker) {
    this.id = id;
    this.properties = properties;
    this.python = python;
    this.worker = worker;
  }

  /** A function of this process, from which others take how Python workers are started. */
  SimplePythonFunction worker() {
    return worker;
  }

  /** The answer is a JSON header, and for a scan what follows it. */
  Answer ask(ObjectNode question) {
    ExecutorService callers = LONG.contains(question.get("call").asText()) ? LONG_CALLERS : CALLERS;
    return new Answer(answer(question.toString(), callers));
  }

  /**
   * Asks what has one answer for ever, as everything has that only depends on a metadata file. What was made of the
   * answer is kept, so that the next query asks nobody.
   */
  Object askOnce(ObjectNode question, AnswerReader reader) {
    String text = question.toString();
    try {
      return ANSWERS.get(id + text, new Asking(this, text, reader));
    } catch (Exception e) {
      throw Bridge.unchecked(e);
    }
  }

  private byte[] answer(String question, ExecutorService callers) {
    byte[] answered;
    try {
      answered = (byte[]) callers.submit(new Call(python, question)).get();
    } catch (Exception thrown) {
      Throwable e = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
      throw Bridge.failure("The Iceberg planner in Python did not answer: " + e.getMessage()
          + " (does the Python process that extended this session still run?)", e);
    }
    JsonNode header = new Answer(answered).header();
    JsonNode error = header.get("error");
    if (error != null) {
      throw Bridge.failure(error.get("type").asText() + ": " + error.get("message").asText(), null);
    }
    return header.has("answer_file") ? take(new File(header.get("answer_file").asText())) : answered;
  }

  /** What is too large for Py4J comes as a file, for us alone. */
  private static byte[] take(File file) {
    try {
      return Files.readAllBytes(file.toPath());
    } catch (IOException e) {
      throw Bridge.failure("The answer of the Iceberg planner cannot be read: " + e.getMessage(), e);
    } finally {
      file.delete();
    }
  }

  /** Makes something that does not change out of an answer. */
  interface AnswerReader {
    Object read(Answer answer);
  }

  static final class Call implements Callable {
    private final Function asked;
    private final String question;

    Call(Function asked, String question) {
      this.asked = asked;
      this.question = question;
    }

    public Object call() {
      return asked.apply(question);
    }
  }

  static final class Asking implements BoundedCache.Loader {
    private static final int BYTES_PER_BYTE = 4; // of objects, for what comes as packed text

    private final Planner planner;
    private final String question;
    private final AnswerReader reader;
    private long bytes;

    Asking(Planner planner, String question, AnswerReader reader) {
      this.planner = planner;
      this.question = question;
      this.reader = reader;
    }

    public Object load() {
      byte[] answered = planner.answer(question, CALLERS);
      bytes = BYTES_PER_BYTE * (long) (answered.length + question.length());
      return reader.read(new Answer(answered));
    }

    public long bytes() {
      return bytes;
    }
  }

  static final class DaemonThreads implements ThreadFactory {
    public Thread newThread(Runnable task) {
      Thread thread = new Thread(task, "hms_iceberg-planner");
      thread.setDaemon(true);
      return thread;
    }
  }
}
