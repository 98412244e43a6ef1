"""Hours of the first and the last timestamps, which no int holds: partitions have them folded, as in Apache Iceberg."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.expressions import EqualTo, GreaterThan, LessThan
from hms_iceberg.expressions.literals import Literal
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.data_types import TimestampType
from hms_iceberg.spec.transforms.partition_transforms import HourTransform
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import QUICK

FIRST, LAST, PAST = -(2**63), 2**63 - 1, -(2**61)


def rows(*times: int) -> pa.Table:
    return pa.table({"n": range(len(times)), "at": pa.array(times, pa.int64()).cast(pa.timestamp("us"))})


@pytest.fixture
def table() -> Table:
    """A file for each hour, without metrics, so that partitions alone decide what is read."""
    catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
    catalog.create_namespace("db", {})
    properties = {**QUICK, "write.metadata.metrics.default": "none"}
    made = catalog.create_table("db.t", rows(0).schema, properties=properties)
    with made.update_spec() as spec:
        spec.add_field("at", HourTransform())
    made.append(rows(0, FIRST, LAST, PAST))
    return made


@pytest.mark.parametrize(
    ("test", "time", "numbers"),
    [
        (EqualTo, LAST, [2]),
        (EqualTo, FIRST, [1]),
        (GreaterThan, 0, [2]),
        (LessThan, 0, [1, 3]),
        (GreaterThan, PAST, [0, 2]),
        (LessThan, LAST, [0, 1, 3]),
        (GreaterThan, FIRST, [0, 2, 3]),
    ],
)
def test_their_rows_are_found_and_deleted(
    table: Table, test: type[BooleanExpression], time: int, numbers: list[int]
) -> None:
    expression = test("at", Literal(time, TimestampType()))
    assert sorted(table.scan(expression).to_arrow()["n"].to_pylist()) == numbers
    table.delete(expression)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == sorted({0, 1, 2, 3} - set(numbers))


def test_an_upsert_finds_them(table: Table) -> None:
    result = table.upsert(rows(7, LAST, FIRST), ["at"])
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
