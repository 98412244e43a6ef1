"""Executors may read a table's manifests; the rows of a query are the same as if the driver read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.spark_tables import Rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = Rows({"n": pa.int64(), "part": pa.string(), "price": pa.float64()})
CONDITIONS = ("true", "n between 105 and 303", "part = 'b'", "part is null and n > 200", "price > 1e9", "isnan(price)")


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    """Five appends, rows of which positions and keys are deleted, and a sixth append after that."""
    table = catalog.create_table(f"{namespace}.t", ROWS.schema, properties={"format-version": "2"})
    with table.update_spec() as spec:
        spec.add_identity("part")
    table.refresh()

    def append(start: int) -> None:
        table.append(
            ROWS((n, ["a", "b", None][n % 3], float("nan") if n % 10 == 4 else n / 8) for n in range(start, start + 9))
        )

    for start in range(0, 500, 100):
        append(start)
    with table.new_row_delta() as delta:
        paths = table.inspect.files()["file_path"].to_pylist()
        delta.delete_positions({path: [0] for path in paths})
    table.refresh()
    with table.new_row_delta() as delta:
        delta.delete_equal(Rows({"n": pa.int64(), "part": pa.string()})([(105, "a"), (301, "b"), (601, "b")]), ["n"])
    append(600)
    return table


@contextmanager
def planning(spark: SparkSession, mode: str) -> Iterator[None]:
    """The session's planning mode, of data and of deletes."""
    names = [f"spark.sql.iceberg.{kind}-planning-mode" for kind in ("data", "delete")]
    for name in names:
        spark.conf.set(name, mode)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def answers(spark: SparkSession, name: str) -> list[list[tuple[object, ...]]]:
    """Rows and counts under several conditions; NaN as text, to be compared."""
    found = [rows_of(spark, f"select n, part, string(price) from {name} where {each}") for each in CONDITIONS]
    return [*found, rows_of(spark, f"select count(*), max(n) from {name}")]


def jobs(spark: SparkSession) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def test_rows_are_the_same_whoever_reads_the_manifests(spark: SparkSession, table: Table) -> None:
    name = ".".join(table.name())
    with planning(spark, "local"):
        expected = answers(spark, name)
    assert [len(each) for each in expected[:5]] == [38, 10, 13, 9, 6]
    with planning(spark, "distributed"):
        assert answers(spark, name) == expected


def test_planning_is_distributed_as_the_session_or_the_table_says(spark: SparkSession, table: Table) -> None:
    name = ".".join(table.name())

    def jobs_of_planning(condition: str) -> int:
        before = jobs(spark)
        spark.sql(f"select * from {name} where {condition}")._jdf.queryExecution().optimizedPlan()
        return jobs(spark) - before

    assert jobs_of_planning("n > 1") == 0, "a small table is planned by the driver"
    with planning(spark, "distributed"):
        assert jobs_of_planning("n > 2") == 2, "one for deletes, one for data"
    with table.transaction() as transaction:
        transaction.set_properties({"read.data-planning-mode": "distributed"})
    assert jobs_of_planning("n > 3") == 1
    with planning(spark, "local"):
        assert jobs_of_planning("n > 4") == 0, "the session goes before the table"
    with planning(spark, "both"), pytest.raises(Exception, match="planning-mode is 'both', expected auto"):
        jobs_of_planning("n > 5")


def test_the_driver_plans_if_executors_cannot(
    spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ".".join(table.name())
    monkeypatch.setattr("hms_iceberg.spark.reading.distributed_planning.for_workers", lambda function, what: b"broken")
    with planning(spark, "distributed"):
        assert rows_of(spark, f"select n from {name} where n > 603") == [(604,), (605,), (606,), (607,), (608,)]
