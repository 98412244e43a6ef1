"""Classes that Spark's JVMs load, as an archive that they map: each of them starts in half of the time.

A whole run starts many of them. The archive is good for one environment only, and so lives in it. A JVM that cannot use
it, as it is of another version or has other jars, goes on without.

Source: JEP 350, "Dynamic CDS Archives".
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.pyspark_home import spark_release

_ENVIRONMENT = "SPARK_SUBMIT_OPTS"
_START = """
from pyspark.sql import SparkSession
import hms_iceberg.spark
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
hms_iceberg.spark.extend(spark)
spark.range(10).selectExpr("sum(id)").collect()
"""


def archive() -> Path:
    """Where the archive of this environment and its PySpark is, or will be."""
    major, minor = spark_release()
    return Path(sys.prefix) / f"spark-{major}.{minor}-classes.jsa"


def use() -> None:
    """Lets JVMs that are started from now on map the archive, if there is one."""
    options = os.environ.get(_ENVIRONMENT, "")
    if archive().exists() and "SharedArchiveFile" not in options:
        # What it says of archives of others would be among a program's own output.
        os.environ[_ENVIRONMENT] = f"{options} -XX:SharedArchiveFile={archive()} -Xlog:disable"


def make() -> None:
    """Makes the archive in a virtual environment that has none; Java before 13 cannot."""
    if archive().exists() or sys.prefix == sys.base_prefix or not os.access(sys.prefix, os.W_OK):
        return
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        made = Path(folder) / "classes.jsa"
        options = f"{os.environ.get(_ENVIRONMENT, '')} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
        environment = {**os.environ, _ENVIRONMENT: options}
        subprocess.run([sys.executable, "-c", _START], env=environment, cwd=folder, capture_output=True, timeout=300)
        if made.exists():
            made.rename(archive())
