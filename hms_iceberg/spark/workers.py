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
    """Has workers beside the driver run the driver's own Python, unless the user says otherwise: PySpark takes the
    PATH's first `python3`, which may lack the driver's packages. `spark-submit` alone reads the setting, and it goes
    before the environment's variable."""
    context: Any = spark.sparkContext
    said = context.getConf().get(_SETTING)
    if said:
        context.pythonExec = said
    elif not os.environ.get(_VARIABLE) and is_local(context.master):
        context.pythonExec = sys.executable


@contextmanager
def own_python(master: str, settings: dict[str, str]) -> Iterator[None]:
    """Has a JVM that is started in the block run this interpreter in workers that it starts of itself; see
    `choose_python`. The environment is put back at its end."""
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
