"""Apache Iceberg's own Spark runtime as a process that answers SQL over its standard streams.

Runs in a PySpark of the version that the runtime was built for, so it imports nothing of this project.
One JSON object a line: ``{"sql": …}`` in, ``{"rows": …, "schema": …}`` or ``{"error": …}`` out. ``{"source": …, "name":
…, "arguments": […]}`` defines a function, and answers what it gives for the session and the arguments as ``result``.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import os
import sys
from typing import Any


def encode(value: Any) -> Any:
    """A Spark value as JSON; struct rows become lists, maps become sorted lists of pairs."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return sorted([encode(key), encode(item)] for key, item in value.items())
    return value


def main() -> None:
    jars, uri, warehouse, folder, keys = sys.argv[1:6]
    # Spark and log4j write to standard output now and then; the answers need a stream of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # Code generation costs more than such few rows are worth.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hive")
        .config("spark.sql.catalog.ice.uri", uri)
        .config("spark.sql.catalog.ice.warehouse", warehouse)
        .config("spark.sql.catalog.ice.cache-enabled", "false")
        .config("spark.sql.catalog.keyed", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.keyed.type", "hive")
        .config("spark.sql.catalog.keyed.uri", uri)
        .config("spark.sql.catalog.keyed.warehouse", warehouse)
        .config("spark.sql.catalog.keyed.cache-enabled", "false")
        .config("spark.sql.catalog.keyed.encryption.kms-impl", "encryption.KeystoreKeys")
        .config("spark.sql.catalog.keyed.kms.keystore.path", keys)
        .config("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.files.type", "hadoop")
        .config("spark.sql.catalog.files.warehouse", folder)
        .config("spark.sql.catalog.files.cache-enabled", "false")
    )
    spark = builder.getOrCreate()
    answers.write(json.dumps({"ready": spark.version}) + "\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, Any]
            if "source" in request:
                scope: dict[str, Any] = {"Any": Any}
                exec(request["source"], scope)
                answer = {"result": scope[request["name"]](spark, *request["arguments"])}
            else:
                frame = spark.sql(request["sql"])
                rows = [encode(row) for row in frame.collect()]
                answer = {"rows": rows, "schema": frame.schema.jsonValue()}
        except Exception as error:  # the test decides what an error means
            answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    main()
