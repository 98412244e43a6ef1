from __future__ import annotations

import pyarrow as pa
import pytest

from hms_iceberg.arrow.formats.file_layout import FileLayout, sanitized
from hms_iceberg.arrow.storage.data_locations import DataLocations, _entropy
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import (
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain_1", "plain_1"),
        ("my col", "my_x20col"),
        ("9x", "_9x"),
        ("a.b", "a_x2Eb"),
        ("größe", "größe"),
        ("名前", "名前"),
        ("😀", "_xD83D_xDE00"),
        ("-", "_x2D"),
        ("x²", "x_xB2"),
        ("²", "_xB2"),
    ],
)
def test_names_are_written_as_java_writes_them(name: str, written: str) -> None:
    assert sanitized(name) == written


def test_columns_of_type_unknown_are_left_out_at_any_depth() -> None:
    entry = StructType(NestedField(5, "x", IntegerType()), NestedField(6, "nothing", UnknownType()))
    schema = Schema(
        NestedField(1, "gone", UnknownType()),
        NestedField(2, "l", ListType(3, entry, False)),
        NestedField(7, "m", MapType(8, StringType(), 9, StructType(NestedField(10, "u", UUIDType())), False)),
    )
    element = pa.struct([("x", pa.int32()), ("nothing", pa.null())])
    value = pa.struct([("u", pa.binary(16))])
    batch = pa.RecordBatch.from_arrays(
        [
            pa.nulls(3),
            pa.array([[{"x": 1, "nothing": None}, None], None, []], pa.list_(element)),
            pa.array([[("k", {"u": b"0123456789abcdef"})], None, [("z", None)]], pa.map_(pa.string(), value)),
        ],
        names=["gone", "l", "m"],
    )
    for part, rows in ((batch, slice(0, 3)), (batch.slice(1), slice(1, 3))):
        written = FileLayout(schema).lay_out(part)
        assert written.schema.names == ["l", "m"]
        assert written.column(0).to_pylist() == [[{"x": 1}, None], None, []][rows]
        uuids = [[(k, v and v["u"].bytes) for k, v in row] if row else row for row in written.column(1).to_pylist()]
        assert uuids == [[("k", b"0123456789abcdef")], None, [("z", None)]][rows]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (StructType(NestedField(2, "x", UnknownType())), "without fields"),
        (ListType(2, UnknownType(), False), "unknown"),
    ],
)
def test_types_without_a_form_in_files_are_refused_by_column(kind: object, words: str) -> None:
    with pytest.raises(UnsupportedError, match=f"'c'.*{words}"):
        FileLayout(Schema(NestedField(1, "c", kind)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("s=a+b%2F1/00000-992-6569e0a7-da7c-4a35-8835-8491233c80f4-00001-deletes.parquet", "0100/1001/0100/01111000"),
        ("s=a+b%2F1/00001-989-52052207-14c6-48a9-bd14-9061944ba566-0-00002.parquet", "0110/0111/0011/11101010"),
        ("s=a+b%2F0/00001-989-52052207-14c6-48a9-bd14-9061944ba566-0-00001.parquet", "1001/0001/1100/10010011"),
    ],
)
def test_entropy_folders_are_those_that_java_chose(name: str, folders: str) -> None:
    assert _entropy(name) == folders


def test_object_storage_keeps_the_names_of_database_and_table_outside_of_the_tables_location() -> None:
    properties = {"write.object-storage.enabled": "true", "write.data.path": "s3://other/place/"}
    location = DataLocations("s3://bucket/wh/db/t", properties).next("a=1")
    entropy, rest = location.removeprefix("s3://other/place/")[:21].rstrip("/"), location.split("/db/t/")[1]
    assert entropy.count("/") == 3
    assert rest.startswith("a=1/00000-0-")
    flat = {**properties, "write.object-storage.partitioned-paths": "false"}
    assert "a=1" not in DataLocations("s3://bucket/wh/db/t", flat).next("a=1")
    inside = DataLocations("s3://b/t", {**flat, "write.data.path": "s3://b/t/data"}).next("")
    assert inside.split("/")[-1][:8].isdigit()


def test_a_suffix_and_an_extension_end_the_name() -> None:
    locations = DataLocations("/wh/t/", {}, operation_id="op", suffix="deletes")
    assert locations.next("", "avro") == "/wh/t/data/00000-0-op-00001-deletes.avro"
    assert locations.next("p=x") == "/wh/t/data/p=x/00000-0-op-00002-deletes.parquet"
