"""Folders of transactional (ACID) tables, written by Hive's own classes out of PySpark's jars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(spark: SparkSession, location: str, rows: Sequence[tuple[int, str | None]], transaction: int = 1) -> None:
    """The delta of one transaction that inserts rows of `id int, name string`.

    Args:
        spark: a session, whose JVM has Hive's classes.
        location: the table's folder.
        rows: what is inserted.
        transaction: its number.
    """
    jvm: Any = spark.sparkContext._jvm
    orc = jvm.org.apache.hadoop.hive.ql.io.orc
    objects = jvm.org.apache.hadoop.hive.serde2.objectinspector
    primitives = objects.primitive.PrimitiveObjectInspectorFactory
    names, kinds = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    for name in ("id", "name"):
        names.add(name)
    for kind in (primitives.javaIntObjectInspector, primitives.javaStringObjectInspector):
        kinds.add(kind)
    inspector = objects.ObjectInspectorFactory.getStandardStructObjectInspector(names, kinds)
    configuration = jvm.org.apache.hadoop.mapred.JobConf()
    configuration.set("columns", "id,name")
    configuration.set("columns.types", "int:string")
    options = getattr(jvm.org.apache.hadoop.hive.ql.io, "AcidOutputFormat$Options")(configuration)
    options.inspector(inspector).bucket(0).minimumTransactionId(transaction).maximumTransactionId(transaction)
    options.writingBase(False).statementId(0)
    updater = orc.OrcOutputFormat().getRecordUpdater(jvm.org.apache.hadoop.fs.Path(location), options)
    for row in rows:
        values = jvm.java.util.ArrayList()
        for value in row:
            values.add(value)
        updater.insert(transaction, values)
    updater.close(False)
