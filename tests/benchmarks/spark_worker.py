"""A Spark session in a process of its own that times SQL: one JSON object a line, in and out.

python spark_worker.py ours URI WAREHOUSE        this project's extension
python spark_worker.py java URI WAREHOUSE JAR    Apache Iceberg's runtime, as the session catalog's Iceberg

A keystore after the jar, which is empty for ours, makes a catalog ``keyed`` on the same metastore with its keys, and
a catalog ``files`` of folders beside it: Java keeps no variants in a metastore.

``{"sql": …}`` is answered by ``{"seconds": …, "rows": […]}``; ``{"views": {name: [paths]}}`` makes views of Parquet
files; ``{"stream": {"source": table, "table": table, "checkpoint": folder}}`` appends a table's files, an epoch each.
Which PySpark it is depends on PYTHONPATH; for ``java`` it imports nothing of this project.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def builder(uri: str, warehouse: str) -> Any:
    """What both sessions have in common."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", warehouse)
        .config("spark.hadoop.hive.metastore.uris", uri)
    )


def session(kind: str, uri: str, warehouse: str, jar: str = "", keys: str = "") -> Any:
    """The session of one side."""
    made = builder(uri, warehouse)
    if keys:
        name, value = ("kms-type", "keystore") if kind == "ours" else ("kms-impl", "encryption.KeystoreKeys")
        made = (
            made.config("spark.sql.catalog.keyed", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.keyed.type", "hive")
            .config("spark.sql.catalog.keyed.uri", uri)
            .config("spark.sql.catalog.keyed.warehouse", warehouse)
            .config(f"spark.sql.catalog.keyed.encryption.{name}", value)
            .config("spark.sql.catalog.keyed.kms.keystore.path", keys)
            .config("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.files.type", "hadoop")
            .config("spark.sql.catalog.files.warehouse", f"{os.path.dirname(keys)}/files")
        )
    if kind == "ours":
        from hms_iceberg.spark import configure

        return configure(made).getOrCreate()
    return (
        made.config("spark.jars", jar)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog")
        .config("spark.sql.catalog.spark_catalog.type", "hive")
        .config("spark.sql.catalog.spark_catalog.uri", uri)
        .config("spark.sql.catalogImplementation", "hive")
        .getOrCreate()
    )


def stream(spark: Any, source: str, table: str, checkpoint: str) -> float:
    """Seconds of a stream that appends each file of a source in an epoch of its own."""
    files = spark.table(source)
    folder = files.inputFiles()[0].rsplit("/", 1)[0]
    rows = spark.readStream.schema(files.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    started = time.perf_counter()
    query = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint).toTable(table)
    query.awaitTermination()
    return time.perf_counter() - started


def shown(value: Any) -> str:
    """A value to compare; sums of floats depend on their order in the last digits."""
    if isinstance(value, float):
        return f"{value:.8g}"
    if isinstance(value, tuple):
        return ", ".join(shown(each) for each in value)
    return str(value)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # Spark writes to standard output now and then
    os.dup2(2, 1)
    spark = session(*sys.argv[1:])
    spark.sparkContext.setLogLevel("ERROR")
    answers.write(json.dumps({"ready": spark.version}) + "\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            for name, paths in request.get("views", {}).items():
                spark.read.parquet(*paths).createOrReplaceTempView(name)
            if "sql" in request:
                started = time.perf_counter()
                rows = spark.sql(request["sql"]).collect()
                answer = {"seconds": time.perf_counter() - started, "rows": [shown(row) for row in rows]}
            if "stream" in request:
                answer = {"seconds": stream(spark, **request["stream"])}
        except Exception as error:  # the benchmark stops on it
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
