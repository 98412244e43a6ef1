"""Apache Iceberg's Java API as a process that commits one-file appends and tells how long each took.

Runs in a PySpark of the version that the runtime was built for, so it imports nothing of this project; no Spark session
is started, only its JVM. One JSON object a line: ``{"table": "db.t", "create": …}`` or ``{"table": …, "commits": n,
"file": path, "size": bytes, "rows": n}`` in, ``{"seconds": […], "failed": n, "failure": …}`` or ``{"error": …}`` out.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import Any


class JavaCatalog:
    """A `HiveCatalog` in a JVM of this process."""

    def __init__(self, jar: str, uri: str, warehouse: str) -> None:
        from pyspark import SparkConf
        from pyspark.java_gateway import launch_gateway

        conf = SparkConf(loadDefaults=False).set("spark.driver.extraClassPath", jar).set("spark.driver.memory", "512m")
        self._gateway = launch_gateway(conf)
        self._jvm = self._gateway.jvm
        self._iceberg = self._jvm.org.apache.iceberg
        self._catalog = self._iceberg.hive.HiveCatalog()
        self._catalog.setConf(self._jvm.org.apache.hadoop.conf.Configuration())
        properties = self._jvm.java.util.HashMap()
        properties.put("uri", uri)
        properties.put("warehouse", warehouse)
        self._catalog.initialize("java", properties)

    def create(self, name: str, properties: dict[str, str]) -> None:
        """A table with one column."""
        long = self._iceberg.types.Types.LongType.get()
        fields = self._jvm.java.util.ArrayList()
        fields.add(self._iceberg.types.Types.NestedField.optional(1, "id", long))
        java_properties = self._jvm.java.util.HashMap()
        for key, value in properties.items():
            java_properties.put(key, value)
        unpartitioned = self._iceberg.PartitionSpec.unpartitioned()
        schema = self._iceberg.Schema(fields)
        self._catalog.createTable(self._identifier(name), schema, unpartitioned, None, java_properties)

    def appends(
        self, name: str, commits: int, file: str, size: int, rows: int, limit: float = math.inf
    ) -> dict[str, Any]:
        """Seconds of each `commit()` that was made, and how many failed; what is before it is not counted.

        None is begun any more when `limit` seconds are over.
        """
        table = self._catalog.loadTable(self._identifier(name))
        builder = self._iceberg.DataFiles.builder(self._iceberg.PartitionSpec.unpartitioned())
        data_file = builder.withPath(file).withFileSizeInBytes(size).withRecordCount(rows).withFormat("parquet").build()
        seconds: list[float] = []
        failed, failure, deadline = 0, "", time.perf_counter() + limit
        for _ in range(commits):
            append = table.newFastAppend().appendFile(data_file)
            began = time.perf_counter()
            if began > deadline:
                break
            try:
                append.commit()
            except Exception as error:
                failed, failure = failed + 1, str(error)[:4000]
            else:
                seconds.append(time.perf_counter() - began)
        return {"seconds": seconds, "failed": failed, "failure": failure}

    def _identifier(self, name: str) -> Any:
        return self._iceberg.catalog.TableIdentifier.parse(name)


def main() -> None:
    """Serves requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    catalog = JavaCatalog(*sys.argv[1:4])
    print(json.dumps({"seconds": []}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {"seconds": [], "failed": 0}
        try:
            if "create" in request:
                catalog.create(request["table"], request["create"])
            else:
                request["name"] = request.pop("table")
                answer = catalog.appends(**request)
        except Exception as error:  # the benchmark tells what it means
            answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
