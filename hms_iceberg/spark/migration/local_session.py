"""A Spark session for a command that needs one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hms_iceberg.errors import MissingDependencyError
from hms_iceberg.spark.session import configure, extend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_on(uri: str, properties: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """An extended session on a metastore: the one that runs already, else a new one that is stopped at the end. Of
    `settings`, `spark.master` is `local[*]` unless given."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError("PySpark is needed here: pip install 'hms_iceberg[spark]'") from error
    running = SparkSession.getActiveSession()
    if running is not None:
        yield extend(running)
        return
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.master": "local[*]"}
    builder = SparkSession.builder.appName("hms-iceberg")
    for name, value in {**quiet, "spark.hadoop.hive.metastore.uris": uri, **settings}.items():
        builder = builder.config(name, value)
    session = configure(builder, properties).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
