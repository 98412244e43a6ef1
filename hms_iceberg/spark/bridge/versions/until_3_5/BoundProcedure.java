package hms_iceberg.bridge.until_3_5;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;

/** A procedure that can be called. */
public interface BoundProcedure {
  ProcedureParameter[] parameters();

  Iterator call(InternalRow arguments);
}
