"""Statements of every kind by one session, for threads that did not make it.

Run as a module with a JSON object (`uri`, `warehouse`, `namespace`, `folder`), it runs them in threads of a process in
which PySpark does not give each Python thread one of Java (`PYSPARK_PIN_THREAD=false`), and writes what they found.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hms_iceberg.table.file_system import FileSystemTables
from tests.support.spark_statements import Metastore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPENDS = 9
"""How many rows `every_kind` adds to its table."""


def every_kind(spark: SparkSession, namespace: str, folder: Path) -> dict[str, int]:
    """Adds `APPENDS` rows to a new table in as many ways; what each way of reading counts.

    Args:
        spark: a session with the named catalog `ice`, on the same metastore.
        namespace: where tables are made; nothing else may make some there.
        folder: a new folder, for checkpoints.
    """
    name, made = f"{namespace}.t", f"{namespace}.made"
    row = spark.range(1).selectExpr("cast(1 as int) id")
    row.writeTo(name).using("iceberg").create()
    before = spark.sql(f"select string(max(committed_at)) from {name}.snapshots").collect()[0][0]
    row.write.format("iceberg").mode("append").save(name)
    row.write.format("iceberg").mode("append").save(f"ice.{name}")
    by_path = FileSystemTables().create(pa.schema([("id", pa.int32())]), str(folder / "table")).metadata.location
    row.write.format("iceberg").mode("append").save(by_path)
    row.write.insertInto(name)
    row.write.format("iceberg").mode("append").saveAsTable(name)
    row.writeTo(f"ice.{name}").append()
    spark.sql(f"insert into {name} values (1)")
    stream(spark.readStream.table(name).limit(1), name, folder / "into")
    stream(spark.readStream.format("iceberg").load(name).limit(1), f"ice.{name}", folder / "named")
    stream(spark.readStream.format("iceberg").load(name), made, folder / "made")
    spark.sql(f"call spark_catalog.system.rewrite_data_files('{name}')")
    spark.sql(f"alter table {made} add column note string")
    read = spark.read.format("iceberg")
    return {
        "table": spark.table(name).count(),
        "load": read.load(name).count(),
        "load of a named catalog": read.load(f"ice.{name}").count(),
        "load of a folder": read.load(by_path).count(),
        "load of the past": read.option("timestampAsOf", before).load(name).count(),
        "columns": len(spark.catalog.listColumns(made)),
        "exists": int(spark.catalog.tableExists(name)),
        "made": spark.table(made).count(),
    }


EXPECTED = {
    "table": APPENDS,
    "load": APPENDS,
    "load of a named catalog": APPENDS,
    "load of a folder": 1,
    "load of the past": 1,
    "columns": 2,
    "exists": 1,
    "made": APPENDS,
}


def few_kinds(spark: SparkSession, namespace: str, folder: Path) -> dict[str, int]:
    """The same of what does not run as a query of the session from its beginning to its end."""
    name = f"{namespace}.t"
    row = spark.range(1)
    row.write.format("iceberg").saveAsTable(name)
    row.write.format("iceberg").mode("append").save(name)
    row.write.format("iceberg").mode("append").save(f"ice.{name}")
    stream(spark.readStream.format("iceberg").load(name), name, folder / "into")
    return {"table": spark.table(name).count()}


def stream(rows: DataFrame, target: str, checkpoint: Path) -> None:
    """Streams what there is into a table."""
    write = rows.writeStream.format("iceberg").trigger(availableNow=True)
    assert write.option("checkpointLocation", str(checkpoint)).toTable(target).awaitTermination(120)


def main() -> None:
    """Runs them in threads, one after the other, and in a callback of a stream."""
    from hms_iceberg.spark import extend
    from tests.support.spark_session import INTERPRETED, extended_session

    given = json.loads(sys.argv[1])
    folder = Path(given["folder"])
    metastore: Any = Metastore(given["uri"], given["warehouse"])
    zone = {"spark_sql_session_timeZone": "Asia/Tokyo"}
    spark = extend(extended_session(metastore, **INTERPRETED, **zone), catalogs={"ice": {"uri": given["uri"]}})
    found = []
    with ThreadPoolExecutor(1) as pool:
        for number in range(2):
            namespace = f"{given['namespace']}_{number}"
            spark.sql(f"create database {namespace}")
            found.append(pool.submit(every_kind, spark, namespace, folder / str(number)).result())

    def batch(frame: DataFrame, _: int) -> None:
        frame.write.format("iceberg").mode("append").save(f"{given['namespace']}_0.made")
        stream(frame.sparkSession.readStream.table(f"{given['namespace']}_1.t"), f"{given['namespace']}_0.t", inner)

    inner = folder / "inner"
    rows = spark.readStream.table(f"{given['namespace']}_1.t").selectExpr("id", "string(id) note")
    query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(folder / "batch"))
    query.trigger(availableNow=True).start().awaitTermination(120)
    counts = [spark.table(f"{given['namespace']}_0.{table}").count() for table in ("made", "t")]
    sys.stdout.write(json.dumps([found, counts]) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
