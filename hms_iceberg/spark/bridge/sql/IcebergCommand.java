package hms_iceberg.bridge.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hms_iceberg.bridge.metastore.TableName;
import hms_iceberg.bridge.wire.CollectionTools;
import hms_iceberg.bridge.wire.Failures;
import hms_iceberg.bridge.wire.IcebergCatalog;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** A statement of ours as Spark runs commands: once, and not for EXPLAIN. */
public abstract class IcebergCommand extends LogicalPlan implements LeafRunnableCommand {
  public final IcebergCatalog catalog;
  public final Identifier ident;
  private final Seq output;

  /** The output are the columns of the statement's answer. */
  public IcebergCommand(IcebergCatalog catalog, Identifier ident, Seq output) {
    this.catalog = catalog;
    this.ident = ident;
    this.output = output;
  }

  public abstract List rows(SparkSession session) throws Exception;

  /** Asks for a change. Errors that Spark has an exception for are that one; the target is the name that may be taken. */
  public void change(ObjectNode question, Identifier target) throws Exception {
    try {
      catalog.source(ident).planner.ask(question);
    } catch (Exception e) {
      String message = String.valueOf(e.getMessage());
      if (message.startsWith("NoSuchViewError: ")) {
        throw new NoSuchViewException(ident);
      }
      if (message.startsWith("ViewAlreadyExistsError: ") || message.startsWith("TableAlreadyExistsError: ")) {
        throw new ViewAlreadyExistsException(target);
      }
      if (message.startsWith("NoSuchNamespaceError: ")) {
        throw new NoSuchNamespaceException(target.namespace());
      }
      throw e;
    }
  }

  public Seq run(org.apache.spark.sql.SparkSession session) {
    try {
      return CollectionTools.seq(rows((SparkSession) session));
    } catch (Exception e) {
      throw Failures.unchecked(e);
    }
  }

  // ------------------------------------------------------------------- what Scala's compiler writes for a case class

  public Seq output() {
    return output;
  }

  public Seq children() {
    return CollectionTools.seq(Collections.emptyList());
  }

  public TreeNode mapChildren(Function1 change) {
    return this;
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return this;
  }

  public TreeNode makeCopy(Object[] elements) {
    return this;
  }

  public LogicalPlan clone() {
    return this;
  }

  public Map metrics() {
    return (Map) Map$.MODULE$.empty();
  }

  public Seq nodePatterns() {
    return CollectionTools.seq(Collections.singletonList(TreePattern.COMMAND()));
  }

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(Seq patterns) {}

  public int productArity() {
    return 1;
  }

  public Object productElement(int index) {
    return catalog.name() + "." + TableName.text(ident);
  }

  public boolean canEqual(Object other) {
    return other == this;
  }

  public boolean equals(Object other) {
    return other == this;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }
}
