"""Rows of every type go through a rewrite unharmed, and are replaced in the middle of a batch."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.errors import InvalidInputError, TypeMismatchError
from hms_iceberg.spec.data_types import (
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
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.changes.upsert import UpsertResult
from tests.support.row_tables import MODES, create
from tests.support.spread import ALL

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
    (FixedType(20), b"\xff" * 20, b"x" * 20),
    (UUIDType(), uuid.UUID(int=1), uuid.UUID(int=2)),
    (ListType(21, StringType(), element_required=False), ["a", None], []),
    (MapType(21, StringType(), 22, LongType(), value_required=False), [("a", 1)], [("b", None)]),
    (STRUCT, {"x": 1, "uid": uuid.UUID(int=1).bytes}, {"x": 2, "uid": None}),
    (UnknownType(), None, None),
]


# Each type in one mode, its neighbour in the other; HMS_ICEBERG_TESTS=all tries both.
CASES = [
    (*values, mode)
    for number, values in enumerate(VALUES)
    for place, mode in enumerate(MODES)
    if ALL or place == number % len(MODES)
]


@pytest.mark.parametrize(("kind", "old", "new", "mode"), CASES, ids=[f"{each[0]}-{each[3]}" for each in CASES])
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


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_long_fixed_values_are_found_by_their_shortened_bounds(tmp_path: Path, file_format: str) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "value", FixedType(20)))
    table = create(tmp_path, 2, schema=schema, **{"write.format.default": file_format})
    values = [b"a" * 20, b"a" * 19 + b"b", b"\xff" * 20]
    for number, value in enumerate(values):
        table.append(pa.table({"id": [number], "value": pa.array([value], pa.binary(20))}))
    found = tmp_path / "found.parquet"
    pq.write_table(pa.table({"id": [3], "value": pa.array([b"c" * 20], pa.binary(20))}), found)
    table.add_files([str(found)])
    for number, value in enumerate([*values, b"c" * 20]):
        scan = table.scan(f"value = X'{value.hex()}'")
        assert scan.to_arrow()["id"].to_pylist() == [number]
    assert len(list(table.scan(f"value < X'{values[2].hex()}'").plan_files())) < 5
    assert len(list(table.scan("value < X'61'").plan_files())) == 0


@pytest.mark.parametrize("mode", MODES)
def test_times_beyond_those_of_python_are_assigned_and_are_keys(tmp_path: Path, mode: str) -> None:
    schema = Schema(NestedField(1, "day", DateType()), NestedField(2, "time", TimestampType()))
    table = create(tmp_path, 2, mode, schema=schema)
    last_day, last_time = 2**31 - 1, 2**63 - 1

    def rows(days: list[int], times: list[int]) -> pa.Table:
        columns = pa.array(days, pa.int32()).view(pa.date32()), pa.array(times, pa.int64()).view(pa.timestamp("us"))
        return pa.table(columns, names=["day", "time"])

    def found() -> list[tuple[int, int]]:
        read = table.scan().to_arrow().combine_chunks()
        days, times = (read[name].chunk(0).view(kind) for name, kind in (("day", pa.int32()), ("time", pa.int64())))
        return sorted(zip(days.to_pylist(), times.to_pylist(), strict=True))

    table.append(rows([0, last_day], [0, 0]))
    table.update({"time": rows([0], [last_time])["time"][0]}, "day = 0")
    assert found() == [(0, last_time), (last_day, 0)]
    assert table.upsert(rows([last_day, -last_day], [7, 8]), ["day"]) == UpsertResult(1, 1)
    assert found() == [(-last_day, 8), (0, last_time), (last_day, 7)]
    table.append(rows([last_day], [0]))
    with pytest.raises(InvalidInputError, match=f"'day': {last_day}"):
        table.upsert(rows([last_day], [9]), ["day"])


UID = UUIDType()
UUIDS = [uuid.UUID(int=number).bytes for number in range(4)]
NESTED_UUIDS: list[tuple[IcebergType, list[Any]]] = [
    (ListType(21, UID, element_required=False), [[UUIDS[1], None], [], [UUIDS[2]]]),
    (
        StructType(NestedField(21, "x", ListType(22, UID, element_required=False))),
        [{"x": [UUIDS[1], None]}, {"x": None}, {"x": [UUIDS[2]]}],
    ),
    (
        StructType(NestedField(21, "x", MapType(22, StringType(), 23, UID, value_required=False))),
        [{"x": [("a", UUIDS[1])]}, {"x": None}, {"x": [("b", None)]}],
    ),
    (
        MapType(21, UID, 22, StructType(NestedField(23, "y", UID)), value_required=False),
        [[(UUIDS[1], {"y": UUIDS[2]})], [(UUIDS[1], None)], [(UUIDS[3], {"y": None})]],
    ),
    (ListType(21, FixedType(3), element_required=False), [[b"abc", None], [], [b"xyz"]]),
]


@pytest.mark.parametrize(("file_format", "mode"), [("parquet", MODES[0]), ("orc", MODES[1]), ("avro", MODES[0])])
@pytest.mark.parametrize(("kind", "values"), NESTED_UUIDS, ids=[str(kind) for kind, _ in NESTED_UUIDS])
def test_uuids_within_nested_columns_are_changed_and_written_again(
    tmp_path: Path, kind: IcebergType, values: list[Any], file_format: str, mode: str
) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "value", kind))
    table = create(tmp_path, 3, mode, schema=schema, **{"write.format.default": file_format})
    plain = to_arrow_type(kind, field_ids=False, extensions=False)
    table.append(pa.table({"id": range(5), "value": pa.array([*values, None, values[0]], plain)}))

    def found() -> dict[int, Any]:
        return {each["id"]: each["value"] for each in table.scan().to_arrow().to_pylist()}

    before = found()
    table.delete("id = 4")
    table.update({"id": 7}, "id = 1")
    table.update({"value": pa.array(values, plain)[2]}, "id = 0")
    assert found() == {0: before[2], 7: before[1], 2: before[2], 3: None}
    table.upsert(table.scan("id = 3").to_arrow(), ["id"])
    table.append(table.scan("id = 2 or id = 3").to_arrow())
    assert table.scan("id = 2 or id = 3").count() == 4
    assert len(table.scan().to_pandas()) == 6
    assert table.scan("id = 99").to_pandas().empty


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("s", {"b": 1}, "no field 'b'"),  # Arrow would leave the field out
        ("s", [("a", 1)], "a mapping"),  # Arrow would take it for a struct of nulls
        ("m", [None], "no map"),  # Arrow would end the process
        ("t", "\ud800", "surrogates"),
    ],
)
def test_constants_that_arrow_takes_for_others_or_dies_of_are_refused(
    tmp_path: Path, column: str, value: Any, words: str
) -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(2, "a", LongType()))),
        NestedField(3, "m", MapType(4, StringType(), 5, LongType(), value_required=False)),
        NestedField(6, "t", StringType()),
    )
    with pytest.raises(TypeMismatchError, match=f"Cannot update column '{column}' of table .*{words}"):
        create(tmp_path, schema=schema).update({column: value})
