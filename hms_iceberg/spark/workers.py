"""Which Python Spark's workers run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE, _SETTING = "PYSPARK_PYTHON", "spark.pyspark.python"


def is_local(master: str) -> bool:
    """Whether executors are in the driver's process, or beside it."""
    return re.fullmatch(r"local(-cluster)?(\[.*\])?", master) is not None


def choose_python(spark: SparkSession) -> None:
    """Has workers run what the user says, or else, where they run beside the driver, the driver's own Python.

    PySpark itself takes the first `python3` of the PATH. That lacks what the driver has if the driver is a virtual
    environment's interpreter which was started by its path, as by cron, systemd and editors. Spark documents that the
    setting goes before the environment's variable, and reads it only if `spark-submit` started the driver.
    """
    context: Any = spark.sparkContext
    said = context.getConf().get(_SETTING)
    if said:
        context.pythonExec = said
    elif not os.environ.get(_VARIABLE) and is_local(context.master):
        context.pythonExec = sys.executable


@contextmanager
def own_python(master: str, settings: dict[str, str]) -> Iterator[None]:
    """Has a JVM that is started in the block run this interpreter in workers that it starts of itself; see
    `choose_python`.

    The environment is put back at its end.
    """
    if os.environ.get(_VARIABLE) or not is_local(master):
        yield
        return
    os.environ[_VARIABLE] = settings.get(_SETTING, sys.executable)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def worker_function(spark: SparkSession) -> Any:
    """Any function as the JVM holds those for Python workers: the bridge takes from it how workers are started."""
    from pyspark.sql.types import NullType
    from pyspark.sql.udf import _wrap_function

    return _wrap_function(spark.sparkContext, len, NullType())
