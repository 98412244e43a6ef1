"""A statement that changes rows works on one version of its table, whatever others commit while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spark.questions import QUESTIONS
from tests.support.spark_tables import Rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = Rows({"id": pa.int64(), "name": pa.string()})
MERGE = """
    merge into {t} t using {source} s on t.id = s.id
    when matched then update set name = concat(t.name, '!')
    when not matched then insert *
"""


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def table(request: pytest.FixtureRequest, catalog: Catalog, namespace: str) -> Table:
    """Two files, `(1, a)` and `(2, b)`; only rows that a statement has read are in conflict with it."""
    properties = {"format-version": "2"}
    for kind in ("delete", "update", "merge"):
        properties |= {f"write.{kind}.mode": request.param, f"write.{kind}.isolation-level": "snapshot"}
    table = catalog.create_table(f"{namespace}.t", ROWS.schema, properties=properties)
    table.append(ROWS([(1, "a")]))
    table.append(ROWS([(2, "b")]))
    return table


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, Callable[[], object]], None]:
    """Has something happen once, when Spark asks Python a question about a table of a name."""

    def before(call: str, name: str, happen: Callable[[], object]) -> None:
        kind = QUESTIONS[call]
        events = [happen]

        def answered(tables: Any, asked: Any, question: Any) -> Any:
            while events and asked.name == name:
                events.pop()()
            return kind.answer(tables, asked, question)

        monkeypatch.setitem(QUESTIONS, call, replace(kind, answer=answered))

    return before


def test_rows_that_come_when_files_are_planned_are_not_looked_at(
    spark: SparkSession, table: Table, namespace: str, between: Callable[..., None]
) -> None:
    name = f"{namespace}.t"
    between("begin-rows", name, lambda: table.append(ROWS([(3, "c")])))
    spark.sql(f"update {name} set name = concat(name, '!') where length(name) = 1")
    assert rows_of(spark, f"select * from {name}") == [(1, "a!"), (2, "b!"), (3, "c")]


def test_rows_that_go_when_files_are_planned_are_not_taken_for_rows_that_never_were(
    spark: SparkSession, table: Table, namespace: str, between: Callable[..., None]
) -> None:
    name = f"{namespace}.t"
    between("begin-rows", name, lambda: table.delete("id = 1"))
    with pytest.raises(Exception, match="CommitConflictError"):
        spark.sql(MERGE.format(t=name, source="(select 1L as id, 'new' as name)"))
    assert rows_of(spark, f"select * from {name}") == [(2, "b")]


def test_a_statement_that_reads_its_own_table_reads_the_version_that_it_changes(
    spark: SparkSession, table: Table, catalog: Catalog, namespace: str, between: Callable[..., None]
) -> None:
    name = f"{namespace}.t"
    catalog.create_table(f"{namespace}.u", ROWS.schema).append(ROWS([(0, "u")]))
    between("load", f"{namespace}.u", lambda: table.append(ROWS([(3, "c")])))
    spark.sql(MERGE.format(t=name, source=f"(select t.* from {name} t cross join {namespace}.u)"))
    assert rows_of(spark, f"select * from {name}") == [(1, "a!"), (2, "b!"), (3, "c")]
