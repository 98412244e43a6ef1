package hms_iceberg.bridge;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;

/** A procedure that can be called. */
interface BoundProcedure {
  ProcedureParameter[] parameters();

  Iterator call(InternalRow arguments);
}
