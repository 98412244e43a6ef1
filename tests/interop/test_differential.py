"""Random tables and statements, by Apache Iceberg (Java) and by both of us in turn, on one metastore.

Of every statement the outcome is the same, and so are the rows that either reads of either table. What the metadata
says of the files' rows is what the files hold. `HMS_ICEBERG_DIFFERENTIAL=7:500` takes the seed 7 and 500 tables, for a
long search.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.java_peer import encode
from tests.support.random_statements import Step, random_histories
from tests.support.spark_tables import check_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

SEED, TABLES = map(int, os.environ.get("HMS_ICEBERG_DIFFERENTIAL", "58:1").split(":"))
HISTORIES = random_histories(SEED, TABLES)
LINEAGE = ", _row_id, _last_updated_sequence_number"


class Engines:
    """Two tables with one history: `mixed`, which both of us change in turn, and `theirs`, which only Java does."""

    def __init__(self, spark: SparkSession, java: Any, catalog: Catalog, namespace: str) -> None:
        self._spark = spark
        self._java = java
        self._catalog = catalog
        name = uuid.uuid4().hex[:8]
        self._tables = f"{namespace}.mixed_{name}", f"{namespace}.theirs_{name}"
        self.mixed, self.theirs = self._tables

    def run(self, statement: str, ours: bool) -> bool:
        """Runs a statement on both tables, on `mixed` by us or by Java; whether it succeeded."""
        of_mixed = self._ours(statement) if ours else self._by_java(statement, self.mixed)
        of_theirs = self._by_java(statement, self.theirs)
        assert (of_mixed is None) == (of_theirs is None), (of_mixed, of_theirs)
        return of_mixed is None

    def _ours(self, statement: str) -> str | None:
        try:
            self._spark.sql(statement.replace("{t}", self.mixed).replace("{system}", "spark_catalog")).collect()
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:2000]
        return None

    def _by_java(self, statement: str, table: str) -> str | None:
        call = statement.startswith("call ")
        try:
            self._java.sql(statement.replace("{t}", table if call else f"ice.{table}").replace("{system}", "ice"))
        except AssertionError as error:
            return str(error)
        return None

    def check(self, step: Step, condition: str = "true") -> None:
        """Rows, as either reads them, of either table; and the numbers of rows in files."""
        columns = step.columns + (LINEAGE if step.version == 3 else "")
        mixed, theirs = self._read_by_java(columns, condition)
        width = -2 if step.version == 3 else None  # the ids of rows are those of one table
        assert sorted(row[:width] for row in mixed) == sorted(row[:width] for row in theirs)
        assert self._read(self.mixed, columns, condition) == mixed
        if step.conditions:
            assert self._read(self.theirs, columns, condition) == theirs
        table = self._catalog.load_table(self.mixed)
        if condition == "true" and table.current_snapshot() is not None:
            check_files(table, len(mixed))

    def _read(self, table: str, columns: str, condition: str) -> list[list[str]]:
        return shown(encode(tuple(row)) for row in self._spark.sql(_query(table, columns, condition)).collect())

    def _read_by_java(self, columns: str, condition: str) -> tuple[list[list[str]], list[list[str]]]:
        """The rows of both tables."""
        parts = [_query(f"ice.{table}", f"{label}, {columns}", condition) for label, table in enumerate(self._tables)]
        rows = self._java.sql(" union all ".join(parts))
        mixed, theirs = (shown(row[1:] for row in rows if row[0] == label) for label in (0, 1))
        return mixed, theirs

    def drop(self) -> None:
        for name in self._tables:
            self._catalog.purge_table(name)


def _query(table: str, columns: str, condition: str) -> str:
    return f"select {columns} from {table} where {condition.replace('{t}', table)}"


def shown(rows: Iterable[Sequence[Any]]) -> list[list[str]]:
    """Rows in an order, with values that tell 0 from 0.0 and false."""
    return sorted([json.dumps(value) for value in row] for row in rows)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: str(HISTORIES.index(history)))
def test_random_statements_have_the_outcome_and_the_rows_that_they_have_in_java(
    spark: SparkSession, iceberg_java: Any, catalog: Catalog, history: list[Step]
) -> None:
    catalog.create_namespace_if_not_exists("differential")
    engines = Engines(spark, iceberg_java, catalog, "differential")
    for step in history:
        if engines.run(step.sql, step.ours):
            engines.check(step)
        elif step.sql.startswith(("create", "alter")):
            break
        for condition in step.conditions:
            engines.check(step, condition)
    engines.drop()
