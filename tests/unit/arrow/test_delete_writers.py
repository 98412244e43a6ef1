from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest

from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, write_row_deletes
from hms_iceberg.arrow.deletes.deleted_rows import read_position_deletes
from hms_iceberg.arrow.deletes.puffin import PuffinBlob, read_deletion_vector, write_puffin
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.equality_delete_writer import write_equality_deletes
from hms_iceberg.errors import ConfigurationError, InvalidInputError, SchemaMismatchError
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema

MakeMetadata = Callable[..., TableMetadata]
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "score", DoubleType()),
    NestedField(4, "place", StructType(NestedField(5, "zip", StringType()), NestedField(6, "x", LongType()))),
)


def data_file(name: str, partition: tuple[Any, ...] = (), rows: int = 1 << 40) -> DataFile:
    return DataFile(
        file_path=f"/data/{name}.parquet",
        file_format="PARQUET",
        record_count=rows,
        file_size_in_bytes=1,
        partition=partition,
    )


def deleted(name: str, *positions: int, partition: tuple[Any, ...] = ()) -> DeletedPositions:
    return DeletedPositions(data_file(name, partition), np.array(positions, np.int64))


def counts(file: DataFile) -> tuple[Any, ...]:
    return file.value_counts, file.null_value_counts, file.nan_value_counts


# ----------------------------------------------------------------------------------------- position deletes


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_position_deletes_are_about_one_data_file_each(
    make_metadata: MakeMetadata, storage: ArrowStorage, file_format: str
) -> None:
    metadata = make_metadata(SCHEMA, format_version=2, properties={"write.delete.format.default": file_format})
    files = write_row_deletes(metadata, storage, [deleted("a", 1, 5), deleted("b", 0), deleted("c")])
    assert [(file.record_count, file.referenced_data_file) for file in files] == [
        (2, "/data/a.parquet"),
        (1, "/data/b.parquet"),
    ]
    assert all(file.content is DataFileContent.POSITION_DELETES for file in files)
    assert all(file.file_path.endswith(f"-deletes.{file_format}") for file in files)
    assert {k: v.tolist() for k, v in read_position_deletes(storage, files[0]).items()} == {"/data/a.parquet": [1, 5]}
    path, first, last = b"/data/a.parquet", struct.pack("<q", 1), struct.pack("<q", 5)
    assert files[0].lower_bounds == {2147483546: path, 2147483545: first}
    assert files[0].upper_bounds == {2147483546: path, 2147483545: last}
    assert counts(files[0]) == (None, None, None)


def test_position_deletes_of_a_partition_are_sorted_by_file_and_position(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    properties = {"write.delete.granularity": "partition"}
    metadata = make_metadata(SCHEMA, ("city", "identity"), format_version=2, properties=properties)
    given = [
        deleted("b", 2, 3, partition=("Oslo",)),
        deleted("c", 1, partition=("Rome",)),
        deleted("a", 7, partition=("Oslo",)),
    ]
    oslo, rome = write_row_deletes(metadata, storage, given)
    assert (oslo.partition, rome.partition) == (("Oslo",), ("Rome",))
    assert "/city_0=Oslo/" in oslo.file_path
    found = pq.read_table(oslo.file_path, partitioning=None).to_pylist()
    assert [(row["file_path"], row["pos"]) for row in found] == [
        ("/data/a.parquet", 7),
        ("/data/b.parquet", 2),
        ("/data/b.parquet", 3),
    ]
    assert (oslo.referenced_data_file, oslo.lower_bounds, oslo.upper_bounds) == (None, None, None)
    assert counts(oslo) == (None, None, None)
    assert rome.referenced_data_file == "/data/c.parquet"


def test_earlier_deletes_are_repeated(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    rows = DeletedPositions(data_file("a"), np.array([3]), np.array([1, 3, 9]))
    for version in (2, 3):
        (file,) = write_row_deletes(make_metadata(SCHEMA, format_version=version), storage, [rows])
        assert file.record_count == 3


def test_properties_of_delete_files_go_before_those_of_data_files(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    properties = {"write.parquet.compression-codec": "gzip", "write.delete.parquet.compression-codec": "snappy"}
    metadata = make_metadata(SCHEMA, format_version=2, properties=properties)
    (file,) = write_row_deletes(metadata, storage, [deleted("a", 1)])
    assert pq.read_metadata(file.file_path).row_group(0).column(0).compression == "SNAPPY"


@pytest.mark.parametrize("asked", [None, "true"])
def test_positions_take_no_dictionary_unless_the_table_asks_for_one(
    make_metadata: MakeMetadata, storage: ArrowStorage, asked: str | None
) -> None:
    properties = {} if asked is None else {"write.delete.parquet.dict-encoding-enabled.column.pos": asked}
    metadata = make_metadata(SCHEMA, format_version=2, properties=properties)
    (file,) = write_row_deletes(metadata, storage, [deleted("a", *range(0, 3_000, 2))])
    group = pq.read_metadata(file.file_path).row_group(0)
    assert group.column(0).has_dictionary_page and group.column(1).has_dictionary_page == (asked is not None)


def test_delete_files_come_in_the_order_of_the_data_files(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, format_version=2)
    written = write_row_deletes(metadata, storage, [deleted(f"{name:02}", *range(name + 1)) for name in range(40)])
    assert [(file.referenced_data_file, file.record_count) for file in written] == [
        (f"/data/{name:02}.parquet", name + 1) for name in range(40)
    ]


def test_a_granularity_that_does_not_exist_is_refused(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, format_version=2, properties={"write.delete.granularity": "row"})
    with pytest.raises(ConfigurationError, match="'row'"):
        write_row_deletes(metadata, storage, [deleted("a", 1)])


# ---------------------------------------------------------------------------------------- deletion vectors


def test_deletion_vectors_share_a_puffin_file(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    far = [0, 5, (1 << 32) + 7, (3 << 32) + 1]
    created: list[str] = []
    given = [deleted("a", *far), deleted("ä b", 1), deleted("c", *range(100_000))]
    vectors = write_row_deletes(make_metadata(SCHEMA), storage, given, created.append)
    (location,) = created
    assert [vector.referenced_data_file for vector in vectors] == [each.file.file_path for each in given]
    assert {vector.file_path for vector in vectors} == {location}
    assert all(vector.is_deletion_vector for vector in vectors)
    assert [vector.record_count for vector in vectors] == [4, 1, 100_000]
    for vector, each in zip(vectors, given, strict=True):
        assert read_deletion_vector(storage, vector).tolist() == each.positions.tolist()
    assert (vectors[2].content_size_in_bytes or 0) < 50_000


def test_a_puffin_file_is_framed_as_the_specification_says(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    (vector,) = write_row_deletes(make_metadata(SCHEMA), storage, [deleted("a", 3, 4)])
    data = storage.read(vector.file_path)
    assert len(data) == vector.file_size_in_bytes
    assert data[:4] == data[-4:] == b"PFA1"
    assert data[-8:-4] == bytes(4)
    (length,) = struct.unpack("<i", data[-12:-8])
    footer = json.loads(data[-12 - length : -12])
    assert data[-16 - length : -12 - length] == b"PFA1"
    (blob,) = footer["blobs"]
    assert blob["type"] == "deletion-vector-v1"
    assert blob["fields"] == [2147483645]
    assert (blob["snapshot-id"], blob["sequence-number"]) == (-1, -1)
    assert blob["properties"] == {"referenced-data-file": "/data/a.parquet", "cardinality": "2"}
    assert (blob["offset"], blob["length"]) == (vector.content_offset, vector.content_size_in_bytes)
    assert "compression-codec" not in blob
    bitmap = data[blob["offset"] + 8 : blob["offset"] + blob["length"] - 4]
    assert list(pyroaring.BitMap64.deserialize(bitmap)) == [3, 4]


def test_blobs_of_any_type_can_be_written(storage: ArrowStorage, tmp_path: Any) -> None:
    blobs = [PuffinBlob("x", (1,), b"abc", {"ndv": "3"}, 7, 2), PuffinBlob("y", (), b"")]
    written = write_puffin(storage, f"{tmp_path}/stats.puffin", blobs)
    offsets, size = list(written.offsets), written.size
    assert offsets == [4, 7]
    assert storage.length(f"{tmp_path}/stats.puffin") == size


# ----------------------------------------------------------------------------------------- equality deletes


def rows(**columns: list[Any]) -> pa.Table:
    types = {"id": pa.int64(), "city": pa.string(), "score": pa.float64()}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_equality_deletes_hold_the_key_only(
    make_metadata: MakeMetadata, storage: ArrowStorage, file_format: str
) -> None:
    properties = {"write.delete.format.default": file_format}
    metadata = make_metadata(SCHEMA, format_version=2, properties=properties)
    (file,) = write_equality_deletes(metadata, storage, rows(id=[1, 2], city=["a", None], score=[1.0, 2.0]), [2, 1])
    assert file.content is DataFileContent.EQUALITY_DELETES
    assert file.equality_ids == (1, 2)
    assert file.record_count == 2
    assert set(file.value_counts or {}) == {1, 2}
    if file_format == "parquet":
        assert pq.read_table(file.file_path).column_names == ["id", "city"]


def test_equality_deletes_go_to_the_partitions_of_their_rows(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    metadata = make_metadata(SCHEMA, ("city", "identity"), format_version=2)
    files = write_equality_deletes(metadata, storage, rows(id=[1, 2, 3], city=["a", "b", "a"]), [1])
    assert [(file.partition, file.record_count) for file in files] == [(("a",), 2), (("b",), 1)]
    assert pq.read_table(files[0].file_path, partitioning=None).column_names == ["id"]
    with pytest.raises(SchemaMismatchError, match="'city'"):
        write_equality_deletes(metadata, storage, rows(id=[1]), [1])


def test_a_nested_key_is_written_within_its_struct(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, ("place.x", "identity"), format_version=2)
    table = pa.table({"place": [{"zip": "1", "x": 5}, {"zip": None, "x": 5}]})
    (file,) = write_equality_deletes(metadata, storage, table, [5])
    assert pq.read_table(file.file_path, partitioning=None).to_pylist() == [
        {"place": {"zip": "1"}},
        {"place": {"zip": None}},
    ]


@pytest.mark.parametrize(
    ("ids", "words"), [([], "no column"), ([3], "'score' of type double"), ([4], "'place' of type struct")]
)
def test_what_cannot_be_a_key_is_refused(
    make_metadata: MakeMetadata, storage: ArrowStorage, ids: list[int], words: str
) -> None:
    metadata = make_metadata(SCHEMA, format_version=2)
    with pytest.raises(InvalidInputError, match=words):
        write_equality_deletes(metadata, storage, rows(id=[1], score=[1.0]), ids)
    assert list(storage.list(metadata.location)) == []
