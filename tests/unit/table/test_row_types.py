"""Rows of every type go through a rewrite unharmed, and are replaced in the middle of a batch."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.schema import to_arrow_type
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.table.upsert import UpsertResult
from tests.support.row_tables import MODES, create

UTC = dt.timezone.utc
STRUCT = StructType(NestedField(21, "x", LongType(), required=True), NestedField(22, "uid", UUIDType()))
VALUES: list[tuple[IcebergType, Any, Any]] = [
    (BooleanType(), True, False),
    (IntegerType(), 1, 2),
    (LongType(), 1, 2),
    (FloatType(), 1.5, 2.5),
    (DoubleType(), 1.5, -0.25),
    (DecimalType(9, 2), Decimal("1.50"), Decimal("-2.50")),
    (DecimalType(38, 2), Decimal("1.50"), Decimal("-2.50")),
    (DateType(), dt.date(2020, 1, 1), dt.date(1960, 1, 1)),
    (TimeType(), dt.time(1), dt.time(2, 3, 4, 5)),
    (TimestampType(), dt.datetime(2020, 1, 1), dt.datetime(1960, 1, 1, 1, 1, 1, 1)),
    (TimestamptzType(), dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(1960, 1, 1, tzinfo=UTC)),
    (TimestampNanoType(), dt.datetime(2020, 1, 1), dt.datetime(1960, 1, 1)),
    (StringType(), "a", "bcd"),
    (BinaryType(), b"a", b"bcd"),
    (FixedType(3), b"abc", b"xyz"),
    (UUIDType(), uuid.UUID(int=1), uuid.UUID(int=2)),
    (ListType(21, StringType(), element_required=False), ["a", None], []),
    (MapType(21, StringType(), 22, LongType(), value_required=False), [("a", 1)], [("b", None)]),
    (STRUCT, {"x": 1, "uid": uuid.UUID(int=1).bytes}, {"x": 2, "uid": None}),
    (UnknownType(), None, None),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "old", "new"), VALUES, ids=[str(kind) for kind, _, _ in VALUES])
def test_values_of_any_type_are_replaced(tmp_path: Path, kind: IcebergType, old: Any, new: Any, mode: str) -> None:
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "value", kind))
    table = create(tmp_path, 3, mode, schema=schema)
    plain = to_arrow_type(kind, field_ids=False, extensions=False)

    def rows(values: dict[int, Any]) -> pa.Table:
        stored = [each.bytes if isinstance(each, uuid.UUID) else each for each in values.values()]
        columns = [pa.array(values, pa.int64()), pa.array(stored, plain)]
        return pa.table(columns, schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("value", plain)]))

    def found() -> dict[int, Any]:
        scanned = table.scan().to_arrow().to_pylist()
        return {each["id"]: each["value"] for each in sorted(scanned, key=lambda each: each["id"])}

    table.append(rows({0: old, 1: None, 2: old, 3: new, 4: old}))
    before = found()
    table.update({"value": new}, "id in (1, 2)")
    assert found() == {**before, 1: before[3], 2: before[3]}
    table.update({"value": None}, "id = 4")
    assert found() == {**before, 1: before[3], 2: before[3], 4: None}
    changed = 0 if old is None else 2
    assert table.upsert(rows({0: new, 3: new, 4: old, 5: old}), ["id"]) == UpsertResult(changed, 1)
    assert found() == {**before, 0: before[3], 1: before[3], 2: before[3], 5: before[0]}
    table.delete("id < 3")
    assert found() == {3: before[3], 4: before[4], 5: before[0]}
