from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hms_iceberg.errors import (
    CorruptDataFileError,
    InvalidInputError,
    MissingFileError,
    SchemaMismatchError,
    TypeMismatchError,
)
from hms_iceberg.spec.data_types import (
    BinaryType,
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
    TimestampNanoType,
    TimestampType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.manifests.avro_container import parsed_schema, write_container
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, HourTransform, TruncateTransform
from tests.support.row_tables import arrow, check, create, ids, live, numbered, row, rows_of
from tests.support.tables import BY_CITY

ID_ONE = {"PARQUET:field_id": "1"}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, rows: pa.Table) -> str:
        path = tmp_path / "given" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".orc"):
            orc.write_table(rows, str(path))
        else:
            pq.write_table(rows, path)
        return str(path)

    return write


def test_files_become_part_of_the_table_where_they_are(tmp_path: Path, write: Any) -> None:
    table = create(tmp_path)
    paths = [write("a.parquet", numbered(0, 3)), write("b.orc", numbered(3, 6))]
    table.add_files(paths, {"who": "me"})
    assert {file.file_path for file in live(table)} == set(paths)
    assert rows_of(table) == [row(key) for key in range(6)]
    assert table.current_snapshot().summary["who"] == "me"  # type: ignore[union-attr]
    assert len(table.metadata.metadata_log) == 1
    assert ids(table) == list(range(6))
    check(table)


def test_columns_are_matched_by_name_and_stay_so_when_they_are_renamed(tmp_path: Path, write: Any) -> None:
    table = create(tmp_path)
    table.add_files([write("a.parquet", numbered(0, 3).select(["amount", "id", "city"]))])
    with table.update_schema() as update:
        update.rename_column("city", "town")
    assert table.scan("id = 1").to_arrow().to_pylist() == [{"id": 1, "town": "Rome", "amount": 2}]


def test_a_column_that_the_table_never_had_is_refused_and_one_that_it_dropped_is_not(
    tmp_path: Path, write: Any
) -> None:
    inside = StructType(NestedField(3, "a", LongType()))
    table = create(tmp_path, schema=Schema(NestedField(1, "id", LongType()), NestedField(2, "s", inside)))
    for name, columns, unknown in (
        ("flat.parquet", {"id": [1], "extra": [2]}, "extra"),
        ("flat.orc", {"id": [1], "extra": [2]}, "extra"),
        ("deep.parquet", {"id": [1], "s": [{"a": 1, "b": [{"c": 2, "d": 3}]}], "e": [{"f": 1, "g": 2}]}, "s.b, e"),
    ):
        with pytest.raises(SchemaMismatchError, match=f"columns {unknown}, .*union_by_name"):
            table.add_files([write(name, pa.table(columns))])
    assert table.current_snapshot() is None
    table.add_files([write("all.parquet", pa.table({"id": [1], "s": [{"a": 1}]}))])
    table.update_schema().delete_column("s").commit()
    table.add_files([write("dropped.parquet", pa.table({"id": [2], "s": [{"a": 2}]}))])
    assert sorted(each["id"] for each in table.scan().to_arrow().to_pylist()) == [1, 2]


def test_an_avro_file(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
    path = tmp_path / "x.avro"
    with open(path, "wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), [{"id": 1}, {"id": 2}])
    table = create(tmp_path)
    table.add_files([str(path)])
    assert [each["id"] for each in rows_of(table)] == [1, 2]


def test_metrics_prune_added_files(tmp_path: Path, write: Any) -> None:
    table = create(tmp_path)
    table.add_files([write("a.parquet", numbered(0, 3)), write("b.parquet", numbered(3, 6))])
    assert len(table.scan("id = 5").plan()) == 1


def test_partitions_are_told_by_folders_and_by_bounds(tmp_path: Path, write: Any) -> None:
    table = create(tmp_path, spec=BY_CITY)
    paths = [
        write("city=Oslo/a.parquet", numbered(0, 1).drop(["city"])),
        write("CITY=New%20York/b.parquet", arrow([row(7)]).drop(["city"])),
        write("city=__HIVE_DEFAULT_PARTITION__/c.parquet", arrow([row(2)]).drop(["city"])),
        write("d.parquet", arrow([row(1)])),
        write("e.parquet", arrow([row(5), row(8)])),
    ]
    table.add_files(paths)
    assert {file.file_path: file.partition for file in live(table)} == dict(
        zip(paths, [("Oslo",), ("New York",), (None,), ("Rome",), (None,)], strict=True)
    )
    assert {each["id"]: each["city"] for each in rows_of(table)} == {
        0: "Oslo",
        1: "Rome",
        2: None,
        5: None,
        7: "New York",
        8: None,
    }


@pytest.mark.parametrize(
    ("transform", "rows", "expected"),
    [
        (TruncateTransform(10), numbered(11, 14), 10),
        (TruncateTransform(10), numbered(9, 11), None),
        (BucketTransform(4), numbered(7, 8), 3),
        (BucketTransform(4), numbered(7, 9), None),
    ],
)
def test_partitions_by_transforms_are_told_where_bounds_decide(
    tmp_path: Path, write: Any, transform: Any, rows: pa.Table, expected: int | None
) -> None:
    table = create(tmp_path, spec=PartitionSpec(PartitionField(1, 1000, transform, "id_part")))
    path = write("a.parquet", rows)
    if expected is None:
        with pytest.raises(InvalidInputError, match="more than one value"):
            table.add_files([path])
        assert table.snapshots() == []
    else:
        table.add_files([path])
        assert live(table)[0].partition == (transform.bind(LongType())(rows["id"][0].as_py()),)


def test_hours_of_the_first_and_the_last_timestamps_are_folded_as_when_rows_are_appended(tmp_path: Path) -> None:
    times = [pa.table({"at": pa.array([time], pa.int64()).cast(pa.timestamp("us"))}) for time in (-(2**63), 2**63 - 1)]
    hour = PartitionSpec(PartitionField(1, 1000, HourTransform(), "hour"))
    table = create(tmp_path, schema=Schema(NestedField(1, "at", TimestampType())), spec=hour)
    for number, rows in enumerate(times):
        pq.write_table(rows, tmp_path / f"{number}.parquet")
        table.append(rows)
    appended = sorted(file.partition for file in live(table))
    table.delete()

    table.add_files([f"file:{tmp_path}/{number}.parquet" for number in range(2)])

    assert sorted(file.partition for file in live(table)) == appended == [(-1732919508,), (1732919507,)]


def test_files_of_the_table_are_refused_unless_asked_otherwise(tmp_path: Path, write: Any) -> None:
    table = create(tmp_path)
    path = write("a.parquet", numbered(0, 3))
    table.add_files([path])
    with pytest.raises(InvalidInputError, match="in it already"):
        table.add_files([path])
    with pytest.raises(InvalidInputError, match="more than once"):
        table.add_files([path, path], check_duplicate_files=False)
    table.add_files([path], check_duplicate_files=False)
    assert table.scan().count() == 6


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (pa.table({"x": [1]}), SchemaMismatchError, "none of the table's columns"),
        (pa.table({"id": ["a"]}), TypeMismatchError, "'id'"),
        (pa.table({"city": ["a"]}), SchemaMismatchError, "'id'"),
        (pa.table([[1], [2]], ["id", "id"]), SchemaMismatchError, "both the table's 'id'"),
        (pa.table({"id": pa.array([1, None], pa.int64())}), InvalidInputError, "required"),
        (
            pa.table(
                {"other": [1]}, schema=pa.schema([pa.field("other", pa.int64(), metadata={"PARQUET:field_id": "1"})])
            ),
            SchemaMismatchError,
            "another table",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, write: Any, rows: pa.Table, error: type[Exception], words: str
) -> None:
    table = create(tmp_path)
    with pytest.raises(error, match=words):
        table.add_files([write("a.parquet", rows)])
    assert table.snapshots() == []
    assert "schema.name-mapping.default" not in table.properties


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (DecimalType(9, 2), pa.array([Decimal("1.5")], pa.decimal128(8, 1))),
        (TimestampType(), pa.array([1], pa.timestamp("ns"))),
        (TimestampType(), pa.array([1], pa.timestamp("ms"))),
        (TimestampNanoType(), pa.array([1], pa.timestamp("us"))),
        (IntegerType(), pa.array([1], pa.uint16())),
        (DoubleType(), pa.array([1.5], pa.float16())),
        (StringType(), pa.array([b"a"])),
        (BinaryType(), pa.array(["a"])),
        (TimeType(), pa.array([1], pa.time32("ms"))),
        (ListType(2, DecimalType(9, 2), False), pa.array([[Decimal("1.5")]], pa.list_(pa.decimal128(8, 1)))),
    ],
    ids=str,
)
def test_values_that_other_readers_take_for_others_or_refuse_are_refused(
    tmp_path: Path, write: Any, kind: IcebergType, column: pa.Array
) -> None:
    table = create(tmp_path, version=3, schema=Schema(NestedField(1, "c", kind)))
    with pytest.raises(TypeMismatchError, match=r"its column 'c.*other readers of Iceberg"):
        table.add_files([write("a.parquet", pa.table({"c": column}))])
    assert table.snapshots() == []


@pytest.mark.parametrize("place", ["top", "struct", "list", "map"])
@pytest.mark.parametrize("marked", [True, False], ids=["uuid", "fixed"])
@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        (UUIDType(), {True: True, False: False}),
        (FixedType(16), {True: False, False: True}),
        (BinaryType(), {True: False, False: True}),
    ],
    ids=str,
)
def test_bytes_in_avro_are_uuids_if_they_are_marked_and_only_then(
    tmp_path: Path, kind: IcebergType, taken: dict[bool, bool], marked: bool, place: str
) -> None:
    plain: dict[str, Any] = {"type": "fixed", "name": "f", "size": 16}
    value = {**plain, "logicalType": "uuid"} if marked else plain
    member = [{"name": "i", "type": "int"}, {"name": "x", "type": value}]
    raw = bytes(range(16))
    stored, wanted, rows = {
        "top": (value, kind, raw),
        "struct": (
            {"type": "record", "name": "s", "fields": member},
            StructType(NestedField(2, "i", IntegerType()), NestedField(3, "x", kind)),
            {"i": 1, "x": raw},
        ),
        "list": ({"type": "array", "items": value}, ListType(2, kind, True), [raw]),
        "map": ({"type": "map", "values": value}, MapType(2, StringType(), 3, kind, True), {"k": raw}),
    }[place]
    table = create(tmp_path, schema=Schema(NestedField(1, "c", wanted)))
    path = tmp_path / "x.avro"
    header = {"type": "record", "name": "r", "fields": [{"name": "c", "type": stored}]}
    written = json.loads(json.dumps(header).replace(', "logicalType": "uuid"', ""))
    decoder = parsed_schema(json.dumps(written).encode())
    path.write_bytes(write_container(decoder, json.dumps(header).encode(), [{"c": rows}], "null", {}))
    if taken[marked]:
        table.add_files([str(path)])
        [found] = table.scan().to_arrow().to_pylist()
        assert repr(UUID(bytes=raw) if "UUID" in repr(found) else raw) in repr(found)
    else:
        with pytest.raises(TypeMismatchError, match=r"its column 'c.*other readers of Iceberg"):
            table.add_files([str(path)])
        assert table.snapshots() == []


@pytest.mark.parametrize("kind", [UUIDType(), FixedType(16)], ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_bytes_in_orc_of_another_length_than_the_tables_are_refused(
    tmp_path: Path, write: Any, kind: IcebergType, nested: bool
) -> None:
    raw = bytes(range(16))
    wanted = StructType(NestedField(2, "i", IntegerType()), NestedField(3, "l", ListType(4, kind, False)))
    table = create(tmp_path, schema=Schema(NestedField(1, "c", wanted if nested else kind)))
    shape = pa.struct({"i": pa.int32(), "l": pa.list_(pa.binary())}) if nested else pa.binary()

    def rows(*values: bytes | None) -> pa.Table:
        column = [{"i": 1, "l": [value, raw]} for value in values] if nested else values
        return pa.table({"c": pa.array(column, shape)})

    for number, bad in enumerate((raw[1:], raw + raw, b"")):
        with pytest.raises(TypeMismatchError, match=r"bytes that are not 16 long.*other readers"):
            table.add_files([write(f"{number}.orc", rows(raw, None, bad, raw))])
    assert table.snapshots() == []
    table.add_files([write("good.orc", rows(raw, None, raw))])
    found = repr(table.scan().to_arrow().to_pylist())
    assert found.count(repr(UUID(bytes=raw) if "UUID" in found else raw)) == (5 if nested else 2)


def test_days_of_the_julian_calendar_are_refused(tmp_path: Path, write: Any) -> None:
    table = create(tmp_path, schema=Schema(NestedField(1, "d", DateType())))
    days = pa.table({"d": [dt.date(1500, 1, 10)]})
    with pytest.raises(InvalidInputError, match=r"old calendar of Java.*\(in d\)"):
        table.add_files([write("a.parquet", days.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}))])
    table.add_files([write("b.parquet", days)])
    assert table.scan().to_arrow()["d"].to_pylist() == [dt.date(1500, 1, 10)]


def test_what_is_no_data_file_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"hello")
    with pytest.raises(CorruptDataFileError, match="begins with"):
        table.add_files([str(tmp_path / "x.parquet")])
    with pytest.raises(MissingFileError):
        table.add_files([str(tmp_path / "y.parquet")])
    with pytest.raises(InvalidInputError, match="list of locations"):
        table.add_files(str(tmp_path / "y.parquet"))


def test_files_with_the_ids_of_the_table_are_taken(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), True),
        NestedField(2, "city", StringType()),
        NestedField(3, "amount", IntegerType()),
    )
    source, table = create(tmp_path / "source", schema=schema), create(tmp_path / "target")
    source.append(numbered(0, 4))
    table.add_files([file.file_path for file in live(source)])
    assert ids(table) == [0, 1, 2, 3]
