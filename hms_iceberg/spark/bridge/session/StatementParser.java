package hms_iceberg.bridge.session;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.catalog.SessionThreads;
import hms_iceberg.bridge.sql.CallStatement;
import hms_iceberg.bridge.sql.Statements;
import hms_iceberg.bridge.wire.Extension;
import hms_iceberg.bridge.wire.Planner;
import hms_iceberg.bridge.wire.SparkVersions;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.VariableSubstitution;
import scala.runtime.AbstractFunction2;

/**
 * The session's own parser, and where it gives up, Iceberg's statements. What the session's parser understands, and its
 * errors for what is no statement of ours, stay as they are. A proxy, because the interface grows with Spark's versions.
 */
public final class StatementParser implements InvocationHandler {
  private final Extension extension;
  private final SparkSession session;
  private final ParserInterface parser;

  private StatementParser(Extension extension, SparkSession session, ParserInterface parser) {
    this.extension = extension;
    this.session = session;
    this.parser = parser;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean isPlan = method.getName().startsWith("parsePlan") || "parseQuery".equals(method.getName());
    if (isPlan || "parseMultipartIdentifier".equals(method.getName())) { // every query begins with one of them
      extension.adopt(session);
      SessionThreads.enter(session);
      ExtendedSession.completeRules(extension, session);
    }
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException e) {
      String text = (String) arguments[0];
      LogicalPlan statement = isPlan && e.getCause() instanceof ParseException ? ours(text) : null;
      if (statement == null) {
        throw SparkVersions.ofParser(e.getCause(), text);
      }
      return statement;
    }
  }

  private LogicalPlan ours(String text) throws Throwable {
    try {
      return statement(text);
    } catch (Exception e) {
      throw SparkVersions.ofParser(e, text);
    }
  }

  /** Null if the text does not begin as one of ours. */
  private LogicalPlan statement(String text) throws Exception {
    if (text.toUpperCase(Locale.ROOT).indexOf("ALTER") < 0) {
      return CallStatement.read(session, parser, text);
    }
    ObjectNode question = Planner.question("read-statement");
    String substituted = new VariableSubstitution().substitute(text);
    question.put("text", substituted);
    JsonNode read = extension.planner.ask(question).header();
    if (read.has("problem")) {
      throw SparkVersions.parseException(
          substituted, read.get("near").asText(), "SqlParseError: " + read.get("problem").asText(),
          read.get("line").asInt(), read.get("position").asInt() - 1);
    }
    if (!read.has("statement")) {
      return null;
    }
    List parts = new ArrayList();
    for (Iterator it = read.get("table").elements(); it.hasNext();) {
      parts.add(((JsonNode) it.next()).asText());
    }
    return Statements.plan(parts, read.get("command").asText(), read.get("statement").asText());
  }

  /** What the extensions of a session take. */
  public static final class Builder extends AbstractFunction2 {
    private final Extension extension;

    public Builder(Extension extension) {
      this.extension = extension;
    }

    public Object apply(Object session, Object parser) {
      return Proxy.newProxyInstance(
          StatementParser.class.getClassLoader(),
          new Class[] {ParserInterface.class},
          new StatementParser(extension, (SparkSession) session, (ParserInterface) parser));
    }
  }
}
