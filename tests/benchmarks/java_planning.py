"""Apache Iceberg's Java API as a process that plans a table and tells how long each plan took.

Runs in a PySpark of the version that the runtime was built for, so it imports nothing of this project; no Spark session
is started, only its JVM. Prints a JSON object: ``seconds`` of each plan, seconds of the ``processor`` for the
first, and ``kept`` files.
"""

from __future__ import annotations

import argparse
import json
import os
import time


def processor_seconds(process: int) -> float:
    """What a process has computed so far."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
        return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Loads the table and plans it some times; the files of a plan are counted in the JVM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jar")
    parser.add_argument("location")
    parser.add_argument("--at-least", nargs=2, metavar=("COLUMN", "VALUE"), help="a filter on a column of longs")
    parser.add_argument("--less", nargs=2, metavar=("COLUMN", "VALUE"), help="a filter on a column of longs")
    parser.add_argument("--equal", nargs=2, metavar=("COLUMN", "VALUE"), help="a filter on a column of ints")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    conf.set("spark.driver.extraClassPath", given.jar).set("spark.driver.memory", "2g")
    gateway = launch_gateway(conf)
    jvm = gateway.jvm
    iceberg = jvm.org.apache.iceberg
    files = iceberg.hadoop.HadoopFileIO(jvm.org.apache.hadoop.conf.Configuration())
    table = iceberg.BaseTable(iceberg.StaticTableOperations(given.location, files), "table")
    make = iceberg.expressions.Expressions
    tests = [
        *((make.greaterThanOrEqual, given.at_least),) * bool(given.at_least),
        *((make.lessThan, given.less),) * bool(given.less),
        *((make.equal, given.equal),) * bool(given.equal),
    ]
    seconds = []
    kept = 0
    processor = 0.0
    before = processor_seconds(gateway.proc.pid)
    for _ in range(given.repeats):
        started = time.perf_counter()
        scan = table.newScan()
        for test, (column, value) in tests:
            scan = scan.filter(test(column, int(value)))
        found = scan.planFiles()
        kept = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size(found)
        found.close()
        seconds.append(time.perf_counter() - started)
        processor = processor or processor_seconds(gateway.proc.pid) - before
    print(json.dumps({"seconds": seconds, "processor": processor, "kept": kept}), file=answers, flush=True)


if __name__ == "__main__":
    main()
