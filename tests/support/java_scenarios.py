"""The SQL scenarios on Apache Iceberg's own Spark runtime, whose tables are behind a REST server.

Runs in a PySpark of the version that the runtime was built for. Prints one JSON list a scenario: its name, and the
first thing that is wrong or null.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from tests.support.sql_scenarios import ScenarioRun, scenarios

ARCHIVE = Path(__file__).parents[1] / "golden" / "sql" / "public.tar.gz"
DATABASE = "gold"


def main() -> None:
    jar, metastore, warehouse, server, planning, wanted, folder = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Spark writes to standard output now and then
    from pyspark.sql import SparkSession

    catalogs = {
        "spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "ice": "org.apache.iceberg.spark.SparkCatalog",
    }
    settings = {
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.hadoop.hive.metastore.uris": metastore,
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.sql.warehouse.dir": warehouse,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
    }
    for name, catalog in catalogs.items():
        rest = {"": catalog, ".type": "rest", ".uri": server, ".scan-planning-mode": planning}
        settings |= {f"spark.sql.catalog.{name}{key}": value for key, value in rest.items()}
    builder = SparkSession.builder.master("local[2]").enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sql(f"create database if not exists {DATABASE}")
    for number, scenario in enumerate(scenarios(ARCHIVE)):
        if re.search(wanted, scenario.name):
            problem = ScenarioRun(spark, scenario, DATABASE, number, Path(folder)).problem()
            answers.write(json.dumps([scenario.name, problem]) + "\n")
            answers.flush()
    spark.sql(f"drop database {DATABASE} cascade")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    main()
