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
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.errors import IcebergError
from hms_iceberg.spark import extend
from tests.support.java_peer import encode
from tests.support.random_statements import NEW_FORMS, Default, Step, random_histories
from tests.support.spark_tables import check_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

SEED, TABLES = map(int, os.environ.get("HMS_ICEBERG_DIFFERENTIAL", "58:1").split(":"))
histories = cache(random_histories)  # drawn where a test takes one, not where tests are collected
LINEAGE = ", _row_id, _last_updated_sequence_number"
Rows = list[list[str]]


class Engines:
    """Two tables with one history: `mixed`, which both of us change in turn, and `theirs`, which only Java does."""

    def __init__(self, spark: SparkSession, java: Any, catalog: Catalog, names: tuple[str, str]) -> None:
        """Names are those of the catalog in our Spark and in Java's."""
        self._spark = spark
        self._java = java
        self._catalog = catalog
        self._name, self._javas = names
        catalog.create_namespace_if_not_exists("differential")
        name = uuid.uuid4().hex[:8]
        self._tables = f"differential.mixed_{name}", f"differential.theirs_{name}"
        self.mixed, self.theirs = self._tables
        self._before: list[tuple[dict[str, list[str]], int]] = [({}, 0), ({}, 0)]

    def run(self, step: Step) -> bool:
        """Takes a step on both tables, on `mixed` by us or by Java; whether it succeeded."""
        if step.default:
            of_mixed, of_theirs = (_give_default(self._catalog.load_table(name), step.default) for name in self._tables)
        else:
            of_mixed = self._ours(step.sql) if step.ours else self._by_java(step.sql, self.mixed)
            of_theirs = self._by_java(step.sql, self.theirs)
        assert (of_mixed is None) == (of_theirs is None), (of_mixed, of_theirs)
        return of_mixed is None

    def _ours(self, statement: str) -> str | None:
        try:
            self._spark.sql(_named(statement, self.mixed, self._name)).collect()
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:2000]
        return None

    def _by_java(self, statement: str, table: str) -> str | None:
        try:
            self._java.sql(_named(statement, table, self._javas))
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
        if condition != "true":
            return
        if step.version == 3:
            assert self._lineage(0, mixed) == self._lineage(1, theirs)
        table = self._catalog.load_table(self.mixed)
        if table.current_snapshot() is not None:
            check_files(table, len(mixed))

    def _lineage(self, label: int, rows: Rows) -> list[list[Any]]:
        """Of each row, what the row of its id was after the last step, and whether it was changed since.

        Ids and sequence numbers are a table's own: Java commits a change of no rows, we do not.
        """
        before, last = self._before[label]
        now = {row[-2]: row[:-2] for row in rows if row[-2] != "null"}
        numbers = [int(row[-1]) for row in rows if row[-1] != "null"]
        self._before[label] = now, max([last, *numbers])
        return sorted([row[:-2], row[-1] != "null" and int(row[-1]) > last, before.get(row[-2], [])] for row in rows)

    def _read(self, table: str, columns: str, condition: str) -> Rows:
        query = _query(f"{self._name}.{table}", columns, condition)
        return shown(encode(tuple(row)) for row in self._spark.sql(query).collect())

    def _read_by_java(self, columns: str, condition: str) -> tuple[Rows, Rows]:
        """The rows of both tables."""
        tables = enumerate(f"{self._javas}.{table}" for table in self._tables)
        parts = [_query(table, f"{label}, {columns}", condition) for label, table in tables]
        rows = self._java.sql(" union all ".join(parts))
        mixed, theirs = (shown(row[1:] for row in rows if row[0] == label) for label in (0, 1))
        return mixed, theirs

    def drop(self) -> None:
        for name in self._tables:
            self._catalog.purge_table(name)


def _named(statement: str, table: str, catalog: str) -> str:
    call = statement.startswith("call ")
    return statement.replace("{t}", table if call else f"{catalog}.{table}").replace("{system}", catalog)


def _give_default(table: Table, default: Default) -> str | None:
    try:
        with table.update_schema() as update:
            if default.kind is None:
                update.set_default_value(default.column, default.value)
            else:
                update.add_column(default.column, default.kind, None, default.required, default.value)
    except IcebergError as error:
        return str(error)
    return None


def _query(table: str, columns: str, condition: str) -> str:
    return f"select {columns} from {table} where {condition.replace('{t}', table)}"


def shown(rows: Iterable[Sequence[Any]]) -> Rows:
    """Rows in an order, with values that tell 0 from 0.0 and false."""
    return sorted([json.dumps(value) for value in row] for row in rows)


@pytest.fixture(scope="module")
def new_catalogs(metastore: Any, iceberg_java: Any, spark: SparkSession) -> dict[str, Catalog]:
    """Java's catalogs `keyed` and `files` as ours; in the Spark that all tests share, `keyed_here` and `files_here`."""
    settings = {
        "keyed": {
            "type": "hive", "uri": metastore.uri, "warehouse": str(metastore.warehouse),
            "encryption.kms-type": "keystore", "kms.keystore.path": str(iceberg_java.keys),
        },
        "files": {"type": "hadoop", "warehouse": str(iceberg_java.files), "cache-enabled": "false"},
    }  # fmt: skip
    extend(spark, catalogs={f"{name}_here": properties for name, properties in settings.items()})
    return {name: load_catalog(name, **properties) for name, properties in settings.items()}


@pytest.mark.parametrize("number", range(TABLES))
def test_random_statements_have_the_outcome_and_the_rows_that_they_have_in_java(
    spark: SparkSession, iceberg_java: Any, catalog: Catalog, number: int
) -> None:
    _, history = histories(SEED, TABLES)[number]
    compare(Engines(spark, iceberg_java, catalog, ("spark_catalog", "ice")), history)


@pytest.mark.since_spark("4.1", "the type geometry")
@pytest.mark.parametrize("number", range(max(TABLES, 2)))
def test_so_have_they_of_encrypted_tables_and_those_of_new_types(
    spark: SparkSession, iceberg_java: Any, new_catalogs: dict[str, Catalog], number: int
) -> None:
    form, history = histories(SEED, max(TABLES, 2), NEW_FORMS)[number]
    for run in (spark.sql, iceberg_java.sql):
        run("set spark.sql.geospatial.enabled=true")
    compare(Engines(spark, iceberg_java, new_catalogs[form.place], (f"{form.place}_here", form.place)), history)


def compare(engines: Engines, history: list[Step]) -> None:
    for step in history:
        if engines.run(step):
            engines.check(step)
        elif step.default or step.sql.startswith(("create", "alter")):
            break
        for condition in step.conditions:
            engines.check(step, condition)
    engines.drop()
