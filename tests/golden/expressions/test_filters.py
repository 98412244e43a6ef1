"""Filters over the rows of tables written by Apache Iceberg (Java): our answer is Spark's.

The rows of a read without filter, tested one by one with the filter of another read of the same snapshot, must be the
rows of that other read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.datetimes import parse_date, parse_time, parse_timestamp

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/expected.json"))


_TIMESTAMPS = (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


def stored(kind: IcebergType, value: Any) -> Any:
    """The stored value of a value in ``expected.json``; lists and maps only tell whether they are null."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {field.field_id: stored(field.field_type, value.get(field.name)) for field in kind.fields}
    if isinstance(kind, _TIMESTAMPS):
        nanos, _ = parse_timestamp(value)
        return nanos if isinstance(kind, TimestampNanoType | TimestamptzNanoType) else nanos // 1000
    readers: dict[type[IcebergType], Any] = {
        FloatType: float,
        DoubleType: float,
        DecimalType: Decimal,
        DateType: parse_date,
        TimeType: parse_time,
        UUIDType: UUID,
        BinaryType: bytes.fromhex,
        FixedType: bytes.fromhex,
    }
    return readers[type(kind)](value) if type(kind) in readers else value


def stored_row(schema: Schema, row: dict[str, Any]) -> dict[str, Any]:
    return {field.name: stored(field.field_type, row.get(field.name)) for field in schema.fields}


def schema_of(metadata: TableMetadata, read: dict[str, Any]) -> Schema:
    """A branch is read with the table's schema, everything else in the past with the snapshot's."""
    snapshot = None
    if read.get("ref") and not metadata.refs[read["ref"]].is_branch:
        snapshot = metadata.snapshot_by_name(read["ref"])
    elif read.get("as_of_timestamp_ms"):
        snapshot = metadata.snapshot_as_of(read["as_of_timestamp_ms"])
    elif read.get("snapshot_id"):
        snapshot = metadata.snapshot_by_id(read["snapshot_id"])
    return metadata.schema() if snapshot is None else metadata.schema_for_snapshot(snapshot)


def what(read: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(read.get(key) for key in ("snapshot_id", "as_of_timestamp_ms", "ref", "row_lineage"))


def filtered_reads(case: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every read with a filter, together with the read of all rows of the same snapshot."""
    reads = json.loads((GOLDEN / case / "expected.json").read_text())["reads"]
    whole = {what(read): read for read in reads if not read["filter"] and not read["columns"]}
    for read in reads:
        if read["filter"] and not read["columns"] and what(read) in whole:
            yield read, whole[what(read)]


def is_null_below_noon(read: dict[str, Any]) -> bool:
    """Spark has no type time, so Java's generic reader answered alone: it counts a null as less than every time."""
    return read["name"] == "time_lt_noon" and read["verified_by"] == "generics"


def matching(schema: Schema, row_filter: BooleanExpression, read: dict[str, Any]) -> list[str]:
    test = evaluator(schema, row_filter)
    return sorted(json.dumps(row) for row in read["rows"] if test(stored_row(schema, row)))


@pytest.mark.parametrize("case", CASES)
def test_a_filter_matches_the_rows_that_spark_says(case):
    expected = json.loads((GOLDEN / case / "expected.json").read_text())
    location = GOLDEN / case / expected["metadata_file"]
    metadata = metadata_from_json(location.read_bytes(), str(location))
    for read, whole in filtered_reads(case):
        if is_null_below_noon(read):
            continue
        ours = matching(schema_of(metadata, read), parse(read["filter"]), whole)
        assert ours == sorted(json.dumps(row) for row in read["rows"]), (read["name"], read["filter"])


def test_there_are_filters_to_compare():
    assert sum(len(list(filtered_reads(case))) for case in CASES) > 300
