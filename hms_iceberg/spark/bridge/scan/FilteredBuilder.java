package hms_iceberg.bridge.scan;

import hms_iceberg.bridge.wire.CollectionTools;
import java.util.Collections;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitionSpec$;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.collection.mutable.LinkedHashMap;

/** A builder that gets conditions as they stand in the plan, as before Spark 4.1 only one of Spark's own files does. */
abstract class FilteredBuilder extends FileScanBuilder {
  FilteredBuilder() {
    super((SparkSession) SparkSession.active(), new NoFiles((SparkSession) SparkSession.active()), new StructType());
  }

  static final class NoFiles extends PartitioningAwareFileIndex {
    NoFiles(SparkSession session) {
      super(session, (scala.collection.immutable.Map) Map$.MODULE$.empty(), Option.empty(), NoopCache$.MODULE$);
    }

    public PartitionSpec partitionSpec() {
      return PartitionSpec$.MODULE$.emptySpec();
    }

    public LinkedHashMap leafFiles() {
      return new LinkedHashMap();
    }

    public scala.collection.immutable.Map leafDirToChildrenFiles() {
      return (scala.collection.immutable.Map) Map$.MODULE$.empty();
    }

    public Seq rootPaths() {
      return CollectionTools.seq(Collections.emptyList());
    }

    public void refresh() {}
  }
}
