from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from hms_iceberg.errors import (
    InvalidInputError,
    NullValueError,
    SchemaMismatchError,
    TypeMismatchError,
    UnknownColumnError,
)
from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.changes.upsert import UpsertResult
from hms_iceberg.table.table import Table
from tests.support.row_tables import MODES, arrow, check, create, data_files_on_disk, ids, live, numbered, row, rows_of
from tests.support.tables import BY_CITY

WAYS = [(1, MODES[0]), (2, MODES[0]), (2, MODES[1]), (3, MODES[0]), (3, MODES[1])]
WITH_KEY = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "amount", IntegerType()),
    identifier_field_ids=[1],
)


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_known_keys_are_updated_and_others_inserted(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, mode, spec=BY_CITY)
    table.append(numbered(0, 5))
    table.append(numbered(5, 10))
    result = table.upsert(arrow([row(3, amount=-3), row(7, city="Bern"), row(8), row(20)]), ["id"])
    assert result == UpsertResult(rows_updated=2, rows_inserted=1)
    expected = [row(key) for key in range(10)] + [row(20)]
    expected[3], expected[7] = row(3, amount=-3), row(7, city="Bern")
    assert rows_of(table) == expected
    check(table)


def test_only_files_with_rows_that_change_are_rewritten(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 5))
    table.append(numbered(5, 10))
    before = {file.file_path for file in live(table)}
    table.upsert(arrow([row(3, amount=-3), row(7), row(8)]), ["id"])
    assert len(before & {file.file_path for file in live(table)}) == 1


def test_rows_that_are_there_already_make_no_snapshot(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    assert table.upsert(numbered(2, 6), ["id"]) == UpsertResult(0, 0)
    assert table.upsert(numbered(0, 0), ["id"]) == UpsertResult(0, 0)
    assert len(table.snapshots()) == 1


def test_the_identifier_fields_are_the_key_unless_another_is_given(tmp_path: Path) -> None:
    table = create(tmp_path, schema=WITH_KEY)
    table.append(numbered(0, 3))
    assert table.upsert(arrow([row(1, amount=9), row(5)])) == UpsertResult(1, 1)
    assert table.upsert(arrow([row(9, amount=9)]), ["amount"]) == UpsertResult(1, 0)
    assert ids(table) == [0, 2, 5, 9]


def test_updating_or_inserting_may_be_left_out(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    changes = arrow([row(1, amount=9), row(5)])
    assert table.upsert(changes, ["id"], when_not_matched_insert_all=False) == UpsertResult(1, 0)
    assert table.upsert(arrow([row(0, amount=8), row(5)]), ["id"], when_matched_update_all=False) == UpsertResult(0, 1)
    assert rows_of(table) == [row(0), row(1, amount=9), row(2), row(5)]
    with pytest.raises(InvalidInputError, match="neither"):
        table.upsert(changes, ["id"], False, False)


def test_a_null_key_matches_a_null_row(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(arrow([{"id": 1, "city": None, "amount": 1}, {"id": 2, "city": "Oslo", "amount": 2}]))
    given = arrow([{"id": 7, "city": None, "amount": 1}, {"id": 8, "city": "Rome", "amount": 3}])
    assert table.upsert(given, ["city"]) == UpsertResult(1, 1)
    assert ids(table) == [2, 7, 8]


def test_a_key_that_several_rows_of_the_table_have_is_refused_unless_rows_are_only_inserted(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(arrow([row(1, amount=1), row(2)]))
    table.append(arrow([row(1, amount=2)]))
    with pytest.raises(InvalidInputError, match=r"2 of its rows have the key \{'id': 1\}"):
        table.upsert(arrow([row(1, amount=3), row(2, amount=9)]), ["id"])
    assert table.upsert(arrow([row(1), row(3)]), ["id"], when_matched_update_all=False) == UpsertResult(0, 1)
    assert table.upsert(arrow([row(2, amount=7)]), ["id"]) == UpsertResult(1, 0), "other keys may be shared"


def test_columns_that_are_not_given_keep_their_values(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    given = arrow([row(1, amount=-1), row(9)]).drop(["city"])
    assert table.upsert(given, ["id"]) == UpsertResult(1, 1)
    assert rows_of(table) == [row(0), row(1, amount=-1), row(2), row(9, city=None)]


def test_a_key_of_several_columns(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(arrow([row(1, city="Oslo"), row(1, city="Rome"), row(2, city="Oslo")]))
    given = arrow([row(1, city="Rome", amount=0), row(2, city="Rome")])
    assert table.upsert(given, ["id", "city"]) == UpsertResult(1, 1)
    assert [(each["id"], each["city"], each["amount"]) for each in rows_of(table)] == [
        (1, "Oslo", 2),
        (1, "Rome", 0),
        (2, "Oslo", 4),
        (2, "Rome", 4),
    ]


@pytest.mark.parametrize(
    ("rows", "join_columns", "error", "words"),
    [
        (numbered(0, 2), None, InvalidInputError, "identifier fields"),
        (numbered(0, 2), [], InvalidInputError, "identifier fields"),
        (numbered(0, 2), "id", InvalidInputError, "join_cols"),
        (numbered(0, 2), ["idd"], UnknownColumnError, "idd"),
        (numbered(0, 2), ["id", "id"], InvalidInputError, "twice"),
        (numbered(0, 2).drop(["id"]), ["id"], SchemaMismatchError, "'id'"),
        (pa.concat_tables([numbered(0, 2), numbered(1, 3)]), ["id"], InvalidInputError, "'id': 1"),
        (pa.table({"id": [1], "nope": [1]}), ["id"], SchemaMismatchError, "nope"),
        (pa.table({"id": ["x"]}), ["id"], TypeMismatchError, "'id'"),
        (pa.table({"id": pa.array([None], pa.int64())}), ["id"], NullValueError, "'id'"),
        ([1, 2], ["id"], TypeMismatchError, "list"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, rows: Any, join_columns: Any, error: type[Exception], words: str
) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 2))
    before = data_files_on_disk(table)
    with pytest.raises(error, match=words):
        table.upsert(rows, join_columns)
    assert data_files_on_disk(table) == before
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (LongType(), [-1, 0, 2**60]),
        (StringType(), ["", "ä", "z" * 40]),
        (DateType(), [dt.date(1960, 1, 1), dt.date(1970, 1, 1), dt.date(2050, 1, 1)]),
        (TimestampType(), [dt.datetime(1960, 1, 1, 0, 0, 0, 1), dt.datetime(1970, 1, 1), dt.datetime(9999, 1, 1)]),
        (DecimalType(20, 3), [Decimal("-1.234"), Decimal("0.000"), Decimal("12345678901234567.890")]),
        (FixedType(3), [b"abc", b"\x00\x00\x00", b"\xff\xff\xff"]),
        (DoubleType(), [-1.5, 0.0, float("nan")]),
    ],
    ids=str,
)
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_keys_of_any_primitive_type(tmp_path: Path, kind: IcebergType, values: list[Any], many: bool) -> None:
    """With few keys the table is pruned by their values, with many by their bounds."""
    schema = Schema(NestedField(1, "key", kind), NestedField(2, "value", LongType()))
    table = create(tmp_path, schema=schema)
    arrow_type = table.scan().to_arrow().schema.field("key").type
    table.append(pa.table({"key": pa.array(values, arrow_type), "value": pa.array([0, 0, 0], pa.int64())}))
    given = [values[0], values[2], None]
    if many and isinstance(kind, (LongType, StringType)):
        given += [type(values[0])(number) for number in range(10, 400)]
    rows = pa.table({"key": pa.array(given, arrow_type), "value": pa.array([1] * len(given), pa.int64())})
    assert table.upsert(rows, ["key"]) == UpsertResult(2, len(given) - 2)
    assert table.upsert(rows, ["key"]) == UpsertResult(0, 0)


def test_changes_of_nested_columns_are_seen(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "tags", ListType(10, StringType(), element_required=False)),
        NestedField(3, "props", MapType(11, StringType(), 12, LongType(), value_required=False)),
        NestedField(4, "place", StructType(NestedField(13, "x", DoubleType()), NestedField(14, "y", DoubleType()))),
    )
    table = create(tmp_path, 3, schema=schema)

    def nested(key: int, **other: Any) -> dict[str, Any]:
        return {"id": key, "tags": ["a", None], "props": [("k", key)], "place": {"x": 1.0, "y": None}, **other}

    rows = [nested(key) for key in range(8)]
    arrow_schema = pa.schema(
        [
            pa.field("id", pa.int64(), False),
            ("tags", pa.list_(pa.string())),
            ("props", pa.map_(pa.string(), pa.int64())),
            ("place", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
        ]
    )
    table.append(pa.Table.from_pylist(rows, schema=arrow_schema))
    rows[1] = nested(1, tags=["a"])
    rows[2] = nested(2, tags=None)
    rows[3] = nested(3, props=[("k", 99)])
    rows[4] = nested(4, place={"x": 1.0, "y": 2.0})
    rows[5] = nested(5, place=None)
    rows[6] = nested(6, tags=["a", "b"])
    given = pa.Table.from_pylist(rows, schema=arrow_schema)
    assert table.upsert(given, ["id"]) == UpsertResult(6, 0)
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda each: each["id"]) == given.to_pylist()


def test_a_stream_of_polars_rows_is_taken(tmp_path: Path) -> None:
    table: Table = create(tmp_path)
    table.append(numbered(0, 3))
    columns = {"id": [1, 4], "city": ["Bern", "Bern"], "amount": [1, 1]}
    frame = pl.DataFrame(columns, schema_overrides={"amount": pl.Int32})
    assert table.upsert(frame, ["id"]) == UpsertResult(1, 1)


NESTED = Schema(
    NestedField(
        1,
        "place",
        StructType(
            NestedField(3, "at", StructType(NestedField(4, "x", LongType()), NestedField(5, "y", StringType()))),
        ),
    ),
    NestedField(2, "n", LongType()),
    NestedField(6, "tags", ListType(7, StructType(NestedField(8, "k", LongType())), False)),
)


def nested(*rows: tuple[int | None, str | None, int]) -> pa.Table:
    at = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema([("place", pa.struct([("at", at)])), ("n", pa.int64())])
    places = [None if x is None else {"at": {"x": x, "y": y}} for x, y, _ in rows]
    return pa.Table.from_pylist([{"place": p, "n": n} for p, (*_, n) in zip(places, rows, strict=True)], schema=schema)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("mode", MODES)
def test_keys_may_lie_in_structs(tmp_path: Path, mode: str, file_format: str) -> None:
    table = create(tmp_path, 2, mode, schema=NESTED, **{"write.format.default": file_format})
    table.append(nested((1, "a", 10), (2, "b", 20), (None, None, 30)))
    table.append(nested((4, "d", 40)))
    rows = nested((2, "B", 20), (4, "d", 40), (5, "e", 50), (None, None, 31))
    assert table.upsert(rows, ["place.at.x"]) == UpsertResult(2, 1)
    found = {each["n"]: each["place"] and each["place"]["at"] for each in table.scan().to_arrow().to_pylist()}
    assert found == {
        10: {"x": 1, "y": "a"},
        20: {"x": 2, "y": "B"},
        40: {"x": 4, "y": "d"},
        50: {"x": 5, "y": "e"},
        31: None,
    }
    with pytest.raises(InvalidInputError, match="at the top level or in structs"):
        table.upsert(rows, ["tags.element.k"])
    with pytest.raises(InvalidInputError, match="share their key"):
        table.upsert(pa.concat_tables([rows, rows.slice(1, 1)]), ["place.at.x"])
