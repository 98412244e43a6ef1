"""Tries a version of PySpark: what the bridge relies on, and a round of statements of every kind.

    python -m tests.support.try_spark 4.4.0           # fetched with pip
    python -m tests.support.try_spark path/to/folder  # made with pip install --target
    python -m tests.support.try_spark                 # the one that is installed
    python -m tests.support.try_spark 3.5.9 --java path/to/java-11 --master 'local-cluster[2,1,1024]'

One line for each thing that was tried; the exit status is 0 if all of it went well.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.spark.compiler import load_bridge
from tests.support.pyspark_home import environment, pyspark_home
from tests.support.spark_session import extended_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "id bigint, item string, at timestamp, tags array<string>, n int, price decimal(9, 2)"
_TABLE = f"create table t ({_COLUMNS}) using iceberg"
_MERGE = (
    "merge into t using (select 2L id, 'merged' item union all select 9L, 'new') s on t.id = s.id "
    "when matched then update set item = s.item when not matched then insert (id, item) values (s.id, s.item)"
)
# Statements, and the ids (or values) that a query gives after them.
_STEPS: tuple[tuple[str, str, str, list[Any]], ...] = (
    ("insert", "insert into t values (1, 'a', timestamp'2024-01-01 00:00:00', array('x'), 5, 0.5), "
     "(2, null, null, null, null, null), (3, 'c', null, null, 7, 1.25)",
     "select id from t where item is not null", [1, 3]),
    ("branch", "alter table t create branch b", "select count(*) from t.branch_b", [3]),
    ("wider type", "alter table t alter column n type bigint", "select n + 3000000000 from t where n > 5",
     [3000000007]),
    ("wider decimal", "alter table t alter column price type decimal(20, 2)",
     "select cast(sum(price) as string) from t", ["1.75"]),
    ("partition field", "alter table t add partition field bucket(2, id)", "select id from t", [1, 2, 3]),
    ("delete", "delete from t where id = 1", "select id from t", [2, 3]),
    ("update", "update t set item = upper(item) where id = 3", "select item from t where item is not null", ["C"]),
    ("merge", _MERGE, "select concat(id, item) from t", ["2merged", "3C", "9new"]),
    ("branches stay", "", "select id from t version as of 'b'", [1, 2, 3]),
    ("metadata tables", "", "select count(*) from t.snapshots", [4]),
    ("procedure", "call system.rewrite_data_files(table => 't')", "select id from t", [2, 3, 9]),
    ("replace", "create or replace table t using iceberg partitioned by (days(at)) as select id, "
     "timestamp'2024-02-03 04:05:06' at from t", "select id from t where at > '2024-02-03'", [2, 3, 9]),
    ("overwrite", "insert overwrite t select 7L, timestamp'2024-02-03 00:00:00'", "select id from t", [7]),
)  # fmt: skip
_OF_MODES = ("insert", "delete", "update", "merge")
"""What differs by mode: the second one tries no more than these."""


def main() -> int:
    """Tries a version, in a process of its own where it is another one than is installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.try_spark")
    parser.add_argument("version", nargs="?", help="of PySpark, or a folder with it")
    parser.add_argument("--java", help="the home of the Java that Spark runs on; the metastore's is another")
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    asked = parser.parse_args()
    if asked.version is not None:
        home = Path(asked.version) if Path(asked.version).is_dir() else pyspark_home(asked.version)
        others = [f"--{name}={value}" for name in ("java", "master") if (value := getattr(asked, name))]
        command = [sys.executable, "-W", "ignore", "-m", "tests.support.try_spark", *others]
        return subprocess.run(command, env=environment(home)).returncode
    with EmbeddedMetastore() as metastore:
        if asked.java is not None:
            os.environ["JAVA_HOME"] = asked.java
        spark = extended_session(metastore, spark_master=asked.master)
        try:
            return _tried(spark)
        finally:
            spark.stop()


def _tried(spark: SparkSession) -> int:
    load_bridge(spark)
    shapes: Any = spark.sparkContext._gateway.jvm.hms_iceberg.bridge.wire.Shapes
    failed = [f"lacks {part}: {loss or 'needed'}" for part, loss in dict(shapes.missing(spark.version)).items()]
    for mode in ("copy-on-write", "merge-on-read"):
        spark.sql("create database d")
        spark.sql("use d")
        modes = ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
        spark.sql(f"{_TABLE} tblproperties ('format-version'='2', {modes})")
        steps = [step for step in _STEPS if mode == "copy-on-write" or step[0] in _OF_MODES]
        for name, statement, query, expected in steps:
            failed += [] if (told := _step(spark, statement, query, expected)) is None else [f"{mode}, {name}: {told}"]
        spark.sql("use default")
        spark.sql("drop database d cascade")
    java = spark.sparkContext._gateway.jvm.java.lang.System.getProperty("java.version")
    title = f"Spark {spark.version} on Java {java}: {len(failed)} things are wrong"
    sys.stdout.write("\n  ".join([title, *failed]) + "\n")
    return 1 if failed else 0


def _step(spark: SparkSession, statement: str, query: str, expected: list[Any]) -> str | None:
    """What went wrong; None if nothing did."""
    try:
        if statement:
            spark.sql(statement).collect()
        found = sorted(row[0] for row in spark.sql(query).collect())
    except Exception as error:
        return str(error).partition("\nJVM")[0][:500]
    return None if found == expected else f"{query} gave {found}, expected {expected}"


if __name__ == "__main__":
    sys.exit(main())
