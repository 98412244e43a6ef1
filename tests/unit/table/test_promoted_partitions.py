"""Tables whose partition columns were promoted: rows of before are found, replaced and deleted as those of after."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table

LEAST = -(2**31)
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
INTS = [LEAST, LEAST + 5, -7, 0, 5, 2**31 - 1]
DATES = [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]
DECIMALS = [Decimal(each) for each in ("-99.99", "-0.01", "0.00", "99.99")]
# A type, its transform, its values, the promoted type, and values of it.
PROMOTIONS: list[tuple[IcebergType, str, list[Any], IcebergType, list[Any]]] = [
    *(
        (IntegerType(), each, INTS, LongType(), [2**32 + LEAST - 2, 2**32 + 6, -(2**63)])
        for each in ("truncate[10]", "truncate[7]", "truncate[2147483647]", "bucket[8]", "identity", "void")
    ),
    *(
        (DecimalType(4, 2), each, DECIMALS, DecimalType(20, 2), [Decimal("-100.00"), Decimal("1000000.01")])
        for each in ("truncate[500]", "truncate[10000]", "bucket[8]", "identity")
    ),
    (FloatType(), "identity", [-1.5, -0.0, 0.0, 0.25], DoubleType(), [0.1, 1e300]),
    *(
        (DateType(), each, DATES, TimestampType(), [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 3, 1)])
        for each in ("year", "month", "day", "void")
    ),
]


def made(folder: Path, kind: IcebergType, transform: str, file_format: str = "parquet") -> Table:
    catalog = load_catalog("here", type="hadoop", warehouse=str(folder / "warehouse"))
    catalog.create_namespace("db")
    schema = Schema(NestedField(1, "a", kind), NestedField(2, "s", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    properties = {"format-version": "3", "write.format.default": file_format}
    return catalog.create_table("db.t", schema, partition_spec=spec, properties=properties)


def append(table: Table, values: list[Any], what: str) -> None:
    arrow = table.schema().as_arrow()
    table.append(pa.table({"a": values, "s": [f"{what} {each}" for each in values]}, arrow))


def promote(table: Table, kind: IcebergType) -> None:
    with table.update_schema() as update:
        update.update_column("a", kind)


def rows(table: Table, text: str | None = None) -> list[tuple[Any, str]]:
    found = (table.scan(text) if text else table.scan()).to_arrow()
    return sorted(zip(found["a"].to_pylist(), found["s"].to_pylist(), strict=True))


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, (date, datetime)) else str(value)


@pytest.mark.parametrize(("kind", "transform", "before", "promoted", "after"), PROMOTIONS, ids=str)
def test_filters_and_deletes_find_rows_of_before_and_after_a_promotion(
    tmp_path: Path, kind: IcebergType, transform: str, before: list[Any], promoted: IcebergType, after: list[Any]
) -> None:
    table = made(tmp_path, kind, transform)
    append(table, before, "before")
    promote(table, promoted)
    append(table, [*after, *before[:1]] if not isinstance(kind, DateType) else after, "after")
    whole = rows(table)
    values = sorted({each for each, _ in whole})
    for value in values:
        for name, test in TESTS.items():
            found = table.scan(f"a {name} {literal(value)}").count()
            assert found == sum(test(row[0], value) for row in whole), (name, value)
        assert rows(table, f"a = {literal(value)}") == [row for row in whole if row[0] == value]
    # Of a branch for each, since a delete leaves little for the next one.
    for number, (name, value) in enumerate(zip(TESTS, [*values[1:], *values], strict=False)):
        branch = f"b{number}"
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, branch).commit()
        table.delete(f"a {name} {literal(value)}", branch=branch)
        found = table.scan().use_ref(branch).to_arrow()
        left = sorted(zip(found["a"].to_pylist(), found["s"].to_pylist(), strict=True))
        assert left == [row for row in whole if not TESTS[name](row[0], value)], (name, value)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_dynamic_overwrite_replaces_the_partition_that_an_int_wrapped_into(tmp_path: Path, file_format: str) -> None:
    table = made(tmp_path, IntegerType(), "truncate[10]", file_format)
    append(table, [LEAST, LEAST + 8, 5], "before")
    promote(table, LongType())
    arrow = table.schema().as_arrow()
    table.dynamic_partition_overwrite(pa.table({"a": [LEAST], "s": ["after"]}, arrow))
    assert rows(table) == [(LEAST, "after"), (LEAST + 8, f"before {LEAST + 8}"), (5, "before 5")]


def test_equality_deletes_reach_the_partition_that_an_int_wrapped_into(tmp_path: Path) -> None:
    table = made(tmp_path, IntegerType(), "truncate[10]")
    append(table, [LEAST, 5], "before")
    promote(table, LongType())
    append(table, [LEAST, 6], "after")
    table.new_row_delta().delete_equal(pa.table({"a": pa.array([LEAST, 6], pa.int64())}), ["a"]).commit()
    assert rows(table) == [(5, "before 5")]
