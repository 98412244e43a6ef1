"""Spark reads, writes and maintains Iceberg tables beside Hive tables, without a JAR.

    spark = hms_iceberg.spark.extend(spark)                                         a session that runs already
    spark = hms_iceberg.spark.configure(SparkSession.builder).getOrCreate()        a new one
    spark.sql("select * from db.iceberg_table t join db.hive_table h using (id)")
    with hms_iceberg.spark.transaction(spark): ...                                 several statements, one commit

How it works, from the outside in:

    session.py    puts the extension into a session
    compiler.py   compiles bridge/ with the compiler that Spark ships, and gives the classes to the executors
    bridge/       the JVM side: SessionCatalog makes Iceberg tables of rows with table_type=ICEBERG, TableScan asks
                  for their files, FileReader reads and TaskFiles writes them on the executors
    bridge_server.py   is where the JVM reaches Python: a socket that only this user can open, and a secret
    questions.py       every question, with what answers it
    bridge_service.py  answers the questions of the JVM: what is this table, which files, what becomes of a write
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hms_iceberg.spark.session import configure, extend
from hms_iceberg.spark.transaction import transaction

if TYPE_CHECKING:
    from hms_iceberg.spark.engine import SparkEngine
    from hms_iceberg.spark.rowlevel.apply_changes import apply_changes, changes_to

__all__ = ["SparkEngine", "apply_changes", "changes_to", "configure", "extend", "transaction"]

_LATE = {
    "SparkEngine": "hms_iceberg.spark.engine",
    "apply_changes": "hms_iceberg.spark.rowlevel.apply_changes",
    "changes_to": "hms_iceberg.spark.rowlevel.apply_changes",
}


def __getattr__(name: str) -> Any:
    """Imports a name that Python workers, which import this package too, have no use for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
