package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.api.python.SimplePythonFunction;

/**
 * Asks Python, on behalf of one extended session and of those made of it. A question and its answer cross once a table
 * or once a scan, never once a file.
 */
public final class Planner {
  // A thread that is interrupted stops waiting; what it has asked goes on in one of these. No question waits for another
  // one here: Python decides what it answers at once.
  private static final ExecutorService CALLERS = Executors.newCachedThreadPool(new DaemonThreads());

  public final String id;
  public final Map properties;
  public final PythonSocket python;
  public final OpenTransactions transactions = new OpenTransactions();
  private final SimplePythonFunction worker;
  // What is made of answers may hold the session, and so goes with it.
  private final BoundedCache answers = new BoundedCache(Runtime.getRuntime().maxMemory() / 32);

  public Planner(String id, Map properties, PythonSocket python, SimplePythonFunction worker) {
    this.id = id;
    this.properties = properties;
    this.python = python;
    this.worker = worker;
  }

  /** A question without arguments. */
  public static ObjectNode question(String call) {
    return Json.MAPPER.createObjectNode().put("call", call);
  }

  /** A function of this process, from which others take how Python workers are started. */
  public SimplePythonFunction worker() {
    return worker;
  }

  /** Ends the connections to Python, which ends its part of the session. */
  public void close() {
    python.close();
  }

  /**
   * The answer is a JSON header, and for a scan what follows it. What is cached of a table that it changed is not kept; in
   * a transaction, it changes no table yet.
   */
  public Answer ask(ObjectNode question) {
    JsonNode transaction = transactions.active();
    if (transaction != null) {
      question.set("transaction", transaction);
    }
    boolean changes = !question.has("transaction") && python.commits.contains(question.get("call").asText());
    try {
      return answered(question);
    } finally {
      if (changes) {
        CachedTables.refresh(question);
      }
    }
  }

  private Answer answered(ObjectNode question) {
    Call call = new Call(python, question.toString());
    try {
      return new Answer(answer(call, question.has("epoch")));
    } catch (NoAnswer e) {
      if (e.sent && python.commits.contains(question.get("call").asText()) && !question.has("epoch")) {
        throw unknown(question, e.getCause()); // an epoch of a stream comes again, and Python knows it then
      }
      throw e.failure();
    }
  }

  /**
   * Asks what has one answer for ever, as everything has that only depends on a metadata file. What was made of the
   * answer is kept, so that the next query asks nobody.
   */
  public Object askOnce(ObjectNode question, AnswerReader reader) {
    String text = question.toString();
    try {
      return answers.get(text, new Asking(this, text, reader));
    } catch (NoAnswer e) {
      throw e.failure();
    } catch (Exception e) {
      throw Failures.unchecked(e);
    }
  }

  /** Keeps what is known to be the answer to a question. */
  public void remember(ObjectNode question, Object answer) {
    String text = question.toString();
    try {
      answers.get(text, new Known(answer, Asking.BYTES_PER_BYTE * (long) text.length()));
    } catch (Exception e) {
      throw Failures.unchecked(e);
    }
  }

  /**
   * @param toEnd whether one who is interrupted waits nevertheless if the question is on its way: a stream that has
   *     stopped has no commit under way, which the same stream would not see when it starts again
   */
  private static byte[] answer(Call call, boolean toEnd) throws NoAnswer {
    Future future = CALLERS.submit(call);
    byte[] answered = null;
    boolean interrupted = false;
    try {
      while (answered == null) {
        try {
          answered = (byte[]) future.get();
        } catch (InterruptedException e) {
          boolean sent = !call.cancel();
          if (!sent || !toEnd) {
            throw new NoAnswer(e, sent);
          }
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      throw new NoAnswer(e.getCause(), call.sent);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    JsonNode error = new Answer(answered).header().get("error");
    if (error != null) {
      throw Failures.of(error.get("type").asText() + ": " + error.get("message").asText(), null);
    }
    return answered;
  }

  private static RuntimeException unknown(ObjectNode question, Throwable cause) {
    String name = question.hasNonNull("name") ? question.get("name").asText()
        : question.hasNonNull("table") ? question.get("table").asText() : null;
    return Failures.of("CommitStateUnknownError: Nobody can tell yet whether " + question.get("call").asText()
        + (name == null ? "" : " of " + name) + " was carried out: "
        + (cause instanceof InterruptedException ? "the statement was interrupted" : "the answer of Python was lost ("
        + cause.getMessage() + ")") + " while it was under way, and it may still be. Nothing that it wrote was deleted."
        + " Look at the table (its newest snapshots, or the catalog) before the statement is repeated.", cause);
  }

  /** There is no answer: the one who waits was interrupted, or Python cannot be reached. */
  static final class NoAnswer extends Exception {
    /** Whether Python may have the question. */
    final boolean sent;

    NoAnswer(Throwable cause, boolean sent) {
      super(cause);
      this.sent = sent;
    }

    /** Spark knows an interruption when it sees one: a stream that is stopped, a query that is cancelled. */
    public RuntimeException failure() {
      if (getCause() instanceof InterruptedException) {
        return Failures.unchecked((Exception) getCause());
      }
      return Failures.of("The Iceberg planner in Python did not answer: " + getCause().getMessage()
          + " (does the Python process that extended this session still run?)", getCause());
    }
  }

  /** Makes something that does not change out of an answer. */
  public interface AnswerReader {
    Object read(Answer answer);
  }

  static final class Call implements Callable {
    private final PythonSocket python;
    private final String question;
    private final AtomicBoolean begun = new AtomicBoolean();
    /** Whether Python may have the question. */
    volatile boolean sent;

    Call(PythonSocket python, String question) {
      this.python = python;
      this.question = question;
    }

    /** Keeps the question from being asked; false if it is on its way. */
    public boolean cancel() {
      return begun.compareAndSet(false, true);
    }

    public Object call() throws IOException {
      if (!begun.compareAndSet(false, true)) {
        return null;
      }
      byte[] text = question.getBytes(StandardCharsets.UTF_8);
      SocketChannel channel = python.connection();
      boolean done = false;
      try {
        sent = true;
        byte[] answer = python.ask(channel, text);
        done = true;
        return answer;
      } finally {
        if (done) {
          python.done(channel);
        } else {
          channel.close();
        }
      }
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

    public Object load() throws Exception {
      byte[] answered = Planner.answer(new Call(planner.python, question), false);
      bytes = BYTES_PER_BYTE * (long) (answered.length + question.length());
      return reader.read(new Answer(answered));
    }

    public long bytes() {
      return bytes;
    }
  }

  static final class Known implements BoundedCache.Loader {
    private final Object value;
    private final long bytes;

    Known(Object value, long bytes) {
      this.value = value;
      this.bytes = bytes;
    }

    public Object load() {
      return value;
    }

    public long bytes() {
      return bytes;
    }
  }

  static final class DaemonThreads implements ThreadFactory {
    public Thread newThread(Runnable task) {
      Thread thread = Generation.thread(task, "hms_iceberg-planner");
      thread.setDaemon(true);
      return thread;
    }
  }
}
