"""Events that are no changes, as rows of a table: what they were, and why they are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.errors import NullValueError, SchemaMismatchError, TypeMismatchError
from hms_iceberg.ingest.records import Record
from hms_iceberg.spec.data_types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table

_HEADER = StructType(NestedField(11, "name", StringType()), NestedField(12, "value", BinaryType()))
DEAD_LETTERS = Schema(
    NestedField(1, "topic", StringType(), required=True),
    NestedField(2, "partition", IntegerType(), required=True),
    NestedField(3, "offset", LongType(), required=True),
    NestedField(4, "timestamp", TimestamptzType()),
    NestedField(5, "key", BinaryType()),
    NestedField(6, "value", BinaryType()),
    NestedField(7, "headers", ListType(10, _HEADER, False)),
    NestedField(8, "error", StringType(), required=True),
)
"""The columns of a table of such events."""
_ARROW = to_arrow(DEAD_LETTERS, field_ids=False)


@dataclass(frozen=True)
class DeadLetter:
    """An event that is no change, and why."""

    record: Record
    why: str


def check_dead_letters(table: Table) -> None:
    """Refuses a table that cannot take dead letters: one that lacks their columns, or needs others."""
    name = ".".join(table.name())
    with_nulls = {"topic": "", "partition": 0, "offset": 0, "error": ""}
    try:
        SchemaFit(_ARROW, table.schema(), name).fit(pa.RecordBatch.from_pylist([with_nulls], _ARROW))
    except (SchemaMismatchError, TypeMismatchError, NullValueError) as error:
        raise SchemaMismatchError(
            f"Table {name} cannot keep dead letters: {error} Name another table, or let --dead-letters create one."
        ) from error


def dead_letter_rows(letters: Sequence[DeadLetter]) -> pa.Table:
    """The events as rows, with key, value and headers as they came."""
    rows = [
        {
            "topic": each.record.topic,
            "partition": each.record.partition,
            "offset": each.record.offset,
            "timestamp": None if each.record.timestamp_ms is None else each.record.timestamp_ms * 1_000,
            "key": each.record.key,
            "value": each.record.value,
            "headers": [{"name": name, "value": value} for name, value in each.record.headers],
            "error": each.why,
        }
        for each in letters
    ]
    return pa.Table.from_pylist(rows, _ARROW)
