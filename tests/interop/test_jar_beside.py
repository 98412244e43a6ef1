"""Our session with Iceberg's JAR beside it: Java's own catalogs stay Java's, and both see the same tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import PYSPARK, RUNTIME, RUNTIME_VERSION, _runtime_jar
from tests.support.pyspark_home import pyspark_home

pytestmark = [pytest.mark.interop, pytest.mark.spark]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from hms_iceberg.spark import extend

jar, uri, warehouse = sys.argv[1:]
settings = {
    "spark.jars": jar,
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.warehouse.dir": warehouse,
    "spark.hadoop.hive.metastore.uris": uri,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.java": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.java.type": "hive",
    "spark.sql.catalog.java.uri": uri,
    "spark.sql.catalog.java.warehouse": warehouse,
    "spark.sql.catalog.java.cache-enabled": "false",
}
builder = SparkSession.builder.master("local[1]").enableHiveSupport()
for name, value in settings.items():
    builder = builder.config(name, value)
spark = extend(builder.getOrCreate())
spark.sparkContext.setLogLevel("ERROR")

def rows(query):
    return sorted(tuple(row) for row in spark.sql(query).collect())

spark.sql("create database if not exists beside")
spark.sql("create table java.beside.a (id bigint, s string) using iceberg partitioned by (bucket(2, id))")
spark.sql("insert into java.beside.a values (1, 'x'), (2, null)")
spark.sql("create table java.beside.b using iceberg as select id + 1 as id from java.beside.a")
spark.sql("create or replace table java.beside.b using iceberg as select id + 2 as id from java.beside.a")
spark.sql("alter table java.beside.a add column t int")
spark.sql("delete from java.beside.a where id = 2")
plan = spark.sql("select * from java.beside.a")._jdf.queryExecution().executedPlan().toString()
assert "IcebergScan" in plan or "org.apache.iceberg" in plan or "BatchScan" in plan, plan
assert rows("select * from java.beside.a") == rows("select * from beside.a") == [(1, "x", None)]
assert rows("select id from beside.b") == [(3,), (4,)]
spark.sql("create table beside.ours (id bigint) using iceberg")
spark.sql("insert into beside.ours values (7)")
assert rows("select * from java.beside.ours") == [(7,)]
spark.sql("drop table java.beside.b")
assert rows("show tables in beside like 'b'") == []
print("done")
"""


def test_statements_on_java_s_own_catalog_pass_through_our_session(metastore: Any, tmp_path: Path) -> None:
    try:
        jar, home = _runtime_jar(), pyspark_home(PYSPARK)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{RUNTIME} {RUNTIME_VERSION} cannot be had here: {error}")  # Maven
    environment = {
        **{name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"},
        "PYTHONPATH": os.pathsep.join([str(home), str(Path(__file__).parents[2])]),
        "SPARK_HOME": str(home / "pyspark"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", PROGRAM, str(jar), metastore.uri, str(metastore.warehouse)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stdout.strip()[-4:]) == (0, "done"), ran.stderr[-4000:]
