"""The oldest version of Spark, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hms_iceberg.spark.spark_versions import release
from tests.support.pyspark_home import environment, pyspark_home

pytestmark = pytest.mark.spark
OLDEST = "3.5.9"


@pytest.mark.skipif(release(__import__("pyspark").__version__) == release(OLDEST), reason="all tests run on it")
def test_statements_of_every_kind_do_the_same_on_the_oldest_version() -> None:
    try:
        home = pyspark_home(OLDEST)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"PySpark {OLDEST} cannot be had here: {error}")
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.try_spark"]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
