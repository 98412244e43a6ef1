"""Statements for a program that knows no Spark: their rows, and what goes wrong, as values of Python."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import SqlFailedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Loggers of PySpark that tell an error with its stack before it is raised.
_ECHOES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@dataclass(frozen=True)
class Answer:
    columns: Sequence[str]  # their names; none of a statement that only does something
    # each a tuple; a row inside of it has `__fields__`. Iterating over them may raise `SqlFailedError`.
    rows: Iterator[Sequence[Any]]


class SqlSession:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        with suppress(ImportError):  # Spark 3.5 has no such loggers
            from pyspark.logger import PySparkLogger

            for name in _ECHOES:
                PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)

    @property
    def version(self) -> str:
        return str(self._spark.version)

    @property
    def metastore(self) -> str:
        return str(self._spark.conf.get("spark.hadoop.hive.metastore.uris", ""))

    def run(self, statement: str, limit: int | None = None, streamed: bool = False) -> Answer:
        """Runs a statement without its semicolon: names of the columns (none if it gives none), and rows up to a limit.
        With `streamed` rows are fetched part by part, for answers of any size, rather than at once."""
        with _failures():
            frame = self._spark.sql(statement)
            if not frame.columns:
                return Answer((), iter(()))
            if streamed:
                return Answer(frame.columns, _guarded(islice(frame.toLocalIterator(prefetchPartitions=True), limit)))
            return Answer(frame.columns, iter(frame.collect() if limit is None else frame.limit(limit).collect()))

    def cancel(self) -> None:
        self._spark.sparkContext.cancelAllJobs()

    def names(self, statement: str, column: str) -> list[str]:
        """The values of one column of a statement such as SHOW TABLES; none if it fails."""
        try:
            answer = self.run(statement)
        except SqlFailedError:
            return []
        place = list(answer.columns).index(column)
        return [row[place] for row in answer.rows]


def _guarded(rows: Iterator[Any]) -> Iterator[Any]:
    with _failures():
        yield from rows


@contextmanager
def _failures() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SqlFailedError(_brief(error)) from error


def _brief(error: Exception) -> str:
    """Spark's message without the plan and the stack that may follow it."""
    lines = str(error).strip().splitlines()
    ends = [number for number, line in enumerate(lines) if line.startswith(("\tat ", "'", "+- ", "JVM stacktrace"))]
    return "\n".join(lines[: ends[0]] if ends and ends[0] > 0 else lines) or type(error).__name__
