"""What the optimizer is told of columns: never what metadata does not know, which it would take for the truth."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spark.reading.column_statistics import column_statistics
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore

UTC = dt.timezone.utc


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two files of a row of each kind of column, the second of which has no `price` and no `none`."""
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path / "db.db")})
    columns = {
        "id": (pa.int64(), [[1, 2, 2, 9], [5, 7]]),
        "flag": (pa.bool_(), [[True, None, False, True], [None, True]]),
        "day": (pa.date32(), [[dt.date(1969, 12, 30), None, dt.date(1970, 1, 2), None], [None, None]]),
        "price": (pa.float64(), [[0.5, None, 2.0, None], [None, None]]),
        "at": (pa.timestamp("us", "UTC"), [[dt.datetime(2024, 1, 1, tzinfo=UTC)] * 4, [None, None]]),
        "text": (pa.string(), [["a", "b", "a", None], ["c", "d"]]),
        "none": (pa.int32(), [[None] * 4, [None] * 2]),
        "local": (pa.timestamp("us"), [[dt.datetime(2024, 1, 1)] * 4, [None, None]]),
        "uncounted": (pa.int32(), [[1, 2, 3, 4], [5, 6]]),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
    properties = {"write.metadata.metrics.column.uncounted": "none"}
    made = catalog.create_table("db.t", schema, properties=properties)
    for number in range(2):
        made.append(pa.table({name: values[number] for name, (_, values) in columns.items()}, schema=schema))
    return made


def statistics(table: Table, row_filter: BooleanExpression | None = None) -> dict[str, dict[str, Any]]:
    plan = plan_scan(ScanRequest(table.metadata, row_filter=row_filter or AlwaysTrue()), table.storage)
    return column_statistics(plan, table.schema().column_names, table.storage)


def test_columns_are_told_by_bounds_nulls_and_distinct_values(table: Table) -> None:
    new_year = 1_704_067_200_000_000
    assert statistics(table) == {
        "id": {"nulls": 0, "min": 1, "max": 9, "distinct": 6},
        "flag": {"nulls": 2, "min": False, "max": True, "distinct": 2},
        "day": {"nulls": 4, "min": -2, "max": 1, "distinct": 2},
        "price": {"nulls": 4, "min": 0.5, "max": 2.0},
        "at": {"nulls": 2, "min": new_year, "max": new_year},
        "text": {"nulls": 1},
        "none": {"nulls": 6},
    }


def test_only_the_files_of_the_plan_count(table: Table) -> None:
    assert statistics(table, parse("id = 5"))["id"] == {"nulls": 0, "min": 1, "max": 9, "distinct": 6}
    assert statistics(table, parse("text = 'd'"))["id"] == {"nulls": 0, "min": 5, "max": 7, "distinct": 2}


def test_sketches_of_the_snapshot_tell_distinct_values(table: Table) -> None:
    table.maintenance.compute_table_stats()
    table.refresh()
    found = statistics(table)
    assert {name: known.get("distinct") for name, known in found.items()} == {
        "id": 5, "flag": 2, "day": 2, "price": 2, "at": 1, "text": 4, "none": 0,
    }  # fmt: skip
    table.append(table.scan().to_arrow())
    assert "distinct" not in statistics(table)["text"]
