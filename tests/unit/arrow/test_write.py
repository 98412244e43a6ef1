from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.arrow.formats.parquet_writer import ParquetContentWriter
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.errors import (
    ConfigurationError,
    NullValueError,
    SchemaMismatchError,
    StorageError,
    TypeMismatchError,
    UnsupportedError,
)
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
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_bytes

MakeMetadata = Callable[..., TableMetadata]
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "score", DoubleType()),
)
ROWS = pa.table(
    {"id": pa.array([1, 2, 3, 4], pa.int64()), "name": ["a", "b", "a", None], "score": [1.5, None, 2.5, 0.0]}
)


def read(path: str) -> list[dict]:  # type: ignore[type-arg]
    return pq.read_table(path, partitioning=None).to_pylist()


def test_rows_of_an_unpartitioned_table_go_to_one_file_below_data(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    metadata = make_metadata(SCHEMA)
    (file,) = write_data_files(metadata, storage, ROWS)
    assert file.file_path.startswith(f"{metadata.location}/data/00000-0-")
    assert file.file_path.endswith("-00001.parquet")
    assert file.file_format == "PARQUET"
    assert file.record_count == 4
    assert file.partition == ()
    assert file.file_size_in_bytes == storage.length(file.file_path)
    assert read(file.file_path) == ROWS.to_pylist()


def test_metrics_are_what_the_specification_asks_for(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    rows = pa.table(
        {"id": pa.array([7, -2, 3], pa.int64()), "name": ["x" * 20, None, "b"], "score": [float("nan"), -1.5, None]}
    )
    (file,) = write_data_files(make_metadata(SCHEMA), storage, rows)
    assert file.value_counts == {1: 3, 2: 3, 3: 3}
    assert file.null_value_counts == {1: 0, 2: 1, 3: 1}
    assert file.nan_value_counts == {3: 1}
    assert from_bytes(LongType(), file.lower_bounds[1]) == -2
    assert from_bytes(LongType(), file.upper_bounds[1]) == 7
    assert file.lower_bounds[2] == b"b"
    assert file.upper_bounds[2] == b"x" * 15 + b"y"
    assert from_bytes(DoubleType(), file.lower_bounds[3]) == -1.5
    assert from_bytes(DoubleType(), file.upper_bounds[3]) == -1.5
    assert file.split_offsets == (4,)
    assert set(file.column_sizes) == {1, 2, 3}


def test_field_ids_and_the_schema_are_in_the_file(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    schema = Schema(
        NestedField(4, "id", LongType(), required=True),
        NestedField(9, "tags", ListType(11, StringType(), False)),
        NestedField(7, "m", MapType(5, StringType(), 6, StructType(NestedField(8, "x y", IntegerType())), True)),
    )
    rows = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "tags": [["a", None]],
            "m": pa.array([[("k", {"x y": 3})]], pa.map_(pa.string(), pa.struct([("x y", pa.int32())]))),
        }
    )
    (file,) = write_data_files(make_metadata(schema), storage, rows)
    parquet = pq.ParquetFile(file.file_path)
    for wanted in ("field_id=4 id", "field_id=9 tags", "field_id=11 element", "field_id=5 key", "field_id=8 x_x20y"):
        assert wanted in str(parquet.schema)
    assert json.loads(parquet.metadata.metadata[b"iceberg.schema"])["fields"][0]["id"] == 4
    assert b"ARROW:schema" not in parquet.metadata.metadata


def test_rows_are_split_by_partition_and_keep_their_columns(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, ("name", "identity"), ("id", "bucket[4]"))
    rows = pa.table(
        {"id": pa.array(range(100), pa.int64()), "name": ["a/b", None, "ü"] * 33 + ["a/b"], "score": [0.5] * 100}
    )
    files = list(write_data_files(metadata, storage, rows))
    spec = metadata.spec()
    bucket = spec.fields[1].transform.bind(LongType())
    seen = []
    for file in files:
        assert f"/data/{spec.partition_to_path(file.partition, SCHEMA)}/" in file.file_path
        for row in read(file.file_path):
            assert (row["name"], bucket(row["id"])) == file.partition
            seen.append(row)
    assert len({file.partition for file in files}) == len(files)
    assert sorted(seen, key=lambda row: row["id"]) == rows.to_pylist()
    assert any("name_0=a%2Fb" in file.file_path for file in files)


def test_negative_zero_and_nan_are_partitions_of_their_own(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    values = [0.0, -0.0, float("nan"), -float("nan"), None, 0.0, None]
    rows = pa.table({"id": pa.array(range(7), pa.int64()), "score": values})
    files = list(write_data_files(make_metadata(SCHEMA, ("score", "identity")), storage, rows))
    assert [(repr(file.partition[0]), file.record_count) for file in files] == [
        ("0.0", 2),
        ("-0.0", 1),
        ("nan", 2),
        ("None", 2),
    ]


def test_a_partition_source_may_lie_in_a_struct(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(2, "x", IntegerType()), NestedField(3, "d", DateType())))
    )
    rows = pa.table(
        {
            "s": pa.array(
                [{"x": 1, "d": dt.date(2024, 2, 29)}, None, {"x": 1, "d": None}],
                pa.struct([("d", pa.date32()), ("x", pa.int32())]),
            )
        }
    )
    files = list(write_data_files(make_metadata(schema, ("s.x", "identity"), ("s.d", "month")), storage, rows))
    assert [file.partition for file in files] == [(1, 649), (None, None), (1, None)]


def test_every_type_is_written_as_its_own(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 1, 5)
    columns = {
        "bool": (BooleanType(), pa.array([True])),
        "int": (IntegerType(), pa.array([1], pa.int8())),
        "long": (LongType(), pa.array([2], pa.uint32())),
        "float": (FloatType(), pa.array([1.5], pa.float32())),
        "double": (DoubleType(), pa.array([2.5], pa.float32())),
        "date": (DateType(), pa.array([moment.date()])),
        "time": (TimeType(), pa.array([5], pa.time32("s"))),
        "ts": (TimestampType(), pa.array([moment], pa.timestamp("us"))),
        "tz": (TimestamptzType(), pa.array([moment], pa.timestamp("ms", tz="Europe/Paris"))),
        "ns": (TimestampNanoType(), pa.array([7], pa.timestamp("ns"))),
        "string": (StringType(), pa.array(["x"], pa.large_string())),
        "dictionary": (StringType(), pa.array(["x"]).dictionary_encode()),
        "uuid": (UUIDType(), pa.array([UUID(int=5).bytes], pa.uuid())),
        "uuid16": (UUIDType(), pa.array([UUID(int=6).bytes], pa.binary())),
        "fixed": (FixedType(3), pa.array([b"abc"], pa.binary(3))),
        "binary": (BinaryType(), pa.array([b"\xff\x00"], pa.large_binary())),
        "decimal": (DecimalType(20, 4), pa.array([Decimal("-1.25")], pa.decimal128(9, 2))),
        "unknown": (UnknownType(), pa.nulls(1)),
    }
    schema = Schema(*(NestedField(index, name, kind) for index, (name, (kind, _)) in enumerate(columns.items(), 1)))
    (file,) = write_data_files(
        make_metadata(schema), storage, pa.table({name: array for name, (_, array) in columns.items()})
    )
    parquet = pq.ParquetFile(file.file_path)
    text = str(parquet.schema)
    assert "uuid (UUID)" in text
    assert "time (Time(isAdjustedToUTC=false, timeUnit=microseconds))" in text
    assert "ts (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds" in text
    assert "tz (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in text
    assert "ns (Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds" in text
    assert "unknown" not in text
    (row,) = parquet.read().to_pylist()
    assert row["decimal"] == Decimal("-1.2500")
    assert row["uuid16"] == UUID(int=6)
    assert row["dictionary"] == "x"
    for field in schema.fields[:-1]:
        assert from_bytes(field.field_type, file.lower_bounds[field.field_id]) is not None


def test_missing_columns_get_their_write_default_or_null(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "n", IntegerType(), required=True, write_default=7),
        NestedField(3, "d", DateType(), write_default=1),
        NestedField(4, "s", StringType()),
    )
    (file,) = write_data_files(make_metadata(schema), storage, pa.table({"id": pa.array([1, 2], pa.int64())}))
    assert read(file.file_path)[0] == {"id": 1, "n": 7, "d": dt.date(1970, 1, 2), "s": None}


def test_a_missing_struct_gets_the_write_defaults_of_its_fields(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    inner = StructType(
        NestedField(3, "x", LongType(), True, None, 1, 2), NestedField(4, "y", LongType(), False, None, 5, None)
    )
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", inner, False, None, {}, {}))
    (file,) = write_data_files(make_metadata(schema), storage, pa.table({"id": [1]}))
    assert read(file.file_path) == [{"id": 1, "p": {"x": 2, "y": None}}]


def test_decimals_are_integers_up_to_eighteen_digits(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    schema = Schema(*(NestedField(digits, f"d{digits}", DecimalType(digits, 2)) for digits in (9, 10, 18, 19, 38)))
    values = {f.name: pa.array([Decimal("-1.25"), None, Decimal("3.00")], pa.decimal128(9, 2)) for f in schema.fields}
    (file,) = write_data_files(make_metadata(schema), storage, pa.table(values))
    parquet = pq.ParquetFile(file.file_path)
    kinds = [parquet.schema.column(index).physical_type for index in range(5)]
    assert kinds == ["INT32", "INT64", "INT64", "FIXED_LEN_BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]
    assert parquet.schema.column(3).length == 9
    for field in schema.fields:
        bounds = [from_bytes(field.field_type, each[field.field_id]) for each in (file.lower_bounds, file.upper_bounds)]
        assert bounds == [Decimal("-1.25"), Decimal("3.00")]


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        ({"id": pa.array([1.5])}, TypeMismatchError, ["'id'", "long", "double"]),
        ({"id": pa.array([1], pa.uint64())}, TypeMismatchError, ["'id'", "long", "uint64"]),
        ({"id": pa.array([1]), "name": pa.array([b"x"])}, TypeMismatchError, ["'name'", "string", "binary"]),
        ({"id": pa.array([1, None])}, NullValueError, ["'id'", "required", "1 of 2"]),
        ({"name": pa.array(["x"])}, SchemaMismatchError, ["'id'", "required", "missing"]),
        ({"id": pa.array([1]), "nam": pa.array(["x"])}, SchemaMismatchError, ["'nam'", "'name'"]),
        ({"id": pa.array([1]), "ID": pa.array([1])}, SchemaMismatchError, ["'ID'", "'id'"]),
    ],
)
def test_data_that_does_not_fit_is_refused_before_anything_is_written(
    make_metadata: MakeMetadata,
    storage: ArrowStorage,
    column: dict[str, pa.Array],
    error: type[Exception],
    words: list[str],
) -> None:
    metadata = make_metadata(SCHEMA)
    with pytest.raises(error) as caught:
        list(write_data_files(metadata, storage, pa.table(column), table="db.t"))
    for word in [*words, "db.t"]:
        assert word in str(caught.value)
    assert list(storage.list(metadata.location)) == []


def test_timestamps_keep_their_zone_rules(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    schema = Schema(NestedField(1, "ts", TimestampType()), NestedField(2, "tz", TimestamptzType()))
    naive, zoned = pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC"))
    with pytest.raises(TypeMismatchError, match="assume_timezone"):
        list(write_data_files(make_metadata(schema), storage, pa.table({"tz": naive})))
    with pytest.raises(TypeMismatchError, match="local_timestamp"):
        list(write_data_files(make_metadata(schema), storage, pa.table({"ts": zoned})))


def test_nanoseconds_go_to_microseconds_only_without_loss_or_on_request(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    schema = Schema(NestedField(1, "ts", TimestampType()))
    exact, lossy = (pa.table({"ts": pa.array([value], pa.timestamp("ns"))}) for value in (5_000, 5_001))
    list(write_data_files(make_metadata(schema), storage, exact))
    with pytest.raises(TypeMismatchError, match="'ts'"):
        list(write_data_files(make_metadata(schema), storage, lossy))
    allowed = make_metadata(schema, properties={"downcast-ns-timestamp-to-us-on-write": "true"})
    (file,) = write_data_files(allowed, storage, lossy)
    assert pq.read_table(file.file_path)["ts"].cast(pa.int64()).to_pylist() == [5]


def test_nulls_in_required_nested_fields_are_refused_but_not_below_a_null_struct(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    schema = Schema(
        NestedField(
            1,
            "s",
            StructType(NestedField(2, "x", IntegerType(), True), NestedField(3, "l", ListType(4, IntegerType(), True))),
        )
    )
    kind = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.int32()))])

    def write(values: list[object]) -> None:
        list(write_data_files(make_metadata(schema), storage, pa.table({"s": pa.array(values, kind)})))

    write([None, {"x": 1, "l": [1, 2]}, {"x": 2, "l": None}])
    with pytest.raises(NullValueError, match=r"'s\.x'"):
        write([{"x": None, "l": []}])
    with pytest.raises(NullValueError, match=r"'s\.l\.element'"):
        write([{"x": 1, "l": [1, None]}])


def test_a_stream_that_fails_leaves_no_unfinished_file(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, properties={"write.parquet.row-group-limit": "1"})
    schema = pa.schema([pa.field("id", pa.int64())])

    def batches():  # type: ignore[no-untyped-def]
        yield pa.record_batch([pa.array([1, 2], pa.int64())], schema=schema)
        yield pa.record_batch([pa.array([None], pa.int64())], schema=schema)

    created: list[str] = []
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(NullValueError):
        list(write_data_files(metadata, storage, reader, on_create=created.append))
    assert len(created) == 1
    assert list(storage.list(metadata.location)) == []


def test_files_roll_at_the_target_size(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    properties = {"write.target-file-size-bytes": "20000", "write.parquet.row-group-limit": "1000"}
    rows = pa.table({"id": pa.array(range(20_000), pa.int64()), "name": [str(i * 7919) for i in range(20_000)]})
    files = list(write_data_files(make_metadata(SCHEMA, properties=properties), storage, rows))
    assert len(files) > 3
    assert sum(file.record_count for file in files) == 20_000
    assert all(20_000 <= file.file_size_in_bytes < 40_000 for file in files[:-1])
    assert all(len(file.split_offsets or ()) > 1 for file in files[:-1])


def thousands(asked: Callable[[int], None]) -> pa.RecordBatchReader:
    """Three batches of 1,000 rows; tells of each that is asked for."""

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            asked(number)
            yield pa.record_batch({"id": pa.array(range(1_000), pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())


def test_rows_come_in_while_those_before_them_are_written(
    make_metadata: MakeMetadata, storage: ArrowStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, second = ParquetContentWriter.write_row_group, threading.Event()

    def later(writer: ParquetContentWriter, batches: list[pa.RecordBatch]) -> None:
        assert second.wait(10)
        write(writer, batches)

    monkeypatch.setattr(ParquetContentWriter, "write_row_group", later)
    metadata = make_metadata(SCHEMA, properties={"write.parquet.row-group-limit": "1000"})
    rows = thousands(lambda number: second.set() if number == 1 else None)
    [file] = write_data_files(metadata, storage, rows)
    assert file.record_count == 3_000 and len(file.split_offsets or ()) == 3


def test_a_group_of_rows_that_cannot_be_written_ends_the_write(
    make_metadata: MakeMetadata, storage: ArrowStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(writer: ParquetContentWriter, batches: list[pa.RecordBatch]) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(ParquetContentWriter, "write_row_group", fail)
    metadata = make_metadata(SCHEMA, properties={"write.parquet.row-group-limit": "1000"})
    with pytest.raises(StorageError, match="the disk is full"):
        list(write_data_files(metadata, storage, thousands(lambda number: None)))
    assert list(storage.list(metadata.location)) == []


def test_waiting_rows_are_bounded_over_all_partitions(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, ("id", "bucket[5]"))
    rows = pa.table({"id": pa.array(range(50_000), pa.int64())})
    files = list(write_data_files(metadata, storage, rows.to_reader(max_chunksize=5_000), buffer_bytes=100_000))
    assert sum(file.record_count for file in files) == 50_000
    assert max(len(file.split_offsets or ()) for file in files) > 1
    assert len(files) == 5


@pytest.mark.parametrize(("partitions", "budget"), [(60, 48 << 20), (600, 16 << 20)])
def test_a_stream_into_partitions_takes_no_more_memory_than_it_was_given(
    make_metadata: MakeMetadata, storage: ArrowStorage, tmp_path: Path, partitions: int, budget: int
) -> None:
    schema = Schema(NestedField(1, "p", LongType()), NestedField(2, "n", LongType()), NestedField(3, "s", StringType()))
    random, most, begun = np.random.default_rng(1), 0, pa.total_allocated_bytes()
    expected = pa.schema([("p", pa.int64()), ("n", pa.int64()), ("s", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for number in range(20):
            numbers = np.arange(number * 60_000, (number + 1) * 60_000)
            text = pa.array(numbers).cast(pa.string())
            numbered = [pa.array(random.integers(0, partitions, 60_000)), pa.array(numbers)]
            yield pa.record_batch(
                [*numbered, pc.binary_join_element_wise(text, text, text, text, "-")], schema=expected
            )
            most = max(most, pa.total_allocated_bytes() - begun)

    metadata = make_metadata(schema, ("p", "identity"))
    stream = pa.RecordBatchReader.from_batches(expected, batches())
    files = list(write_data_files(metadata, storage, stream, buffer_bytes=budget))
    assert most <= budget, f"{most >> 20} MiB"
    assert len(files) == partitions == len({file.partition for file in files})
    found = duckdb.sql(
        f"select count(*), sum(n), count(distinct n), count(*) filter (s <> concat_ws('-', n, n, n, n)), "
        f"count(distinct p) from read_parquet('{tmp_path}/table/data/**/*.parquet', hive_partitioning = false)"
    )
    assert found.fetchall() == [(1_200_000, 1_199_999 * 600_000, 1_200_000, 0, partitions)]


@pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
def test_mixed_rows_of_very_many_partitions_become_one_file_of_each_in_their_order(
    make_metadata: MakeMetadata, storage: ArrowStorage, name: str
) -> None:
    schema = Schema(NestedField(1, "p", DoubleType()), NestedField(2, "n", LongType()))
    metadata = make_metadata(schema, ("p", "identity"), properties={"write.format.default": name})
    special = [None, float("nan"), -0.0, 0.0, float("inf")]
    keys = [*special, *map(float, range(1, 396))]
    rows = pa.table({"p": pa.array(keys * 50, pa.float64()), "n": pa.array(range(400 * 50), pa.int64())})
    files = list(write_data_files(metadata, storage, rows.to_reader(700), buffer_bytes=64_000))
    assert len(files) == 400 and {file.record_count for file in files} == {50}
    for file in files[::37]:
        if name == "avro":
            with open(file.file_path, "rb") as opened:
                numbers = [row["n"] for row in fastavro.reader(opened)]
        elif name == "orc":
            numbers = orc.read_table(file.file_path)["n"].to_pylist()
        else:
            numbers = pq.read_table(file.file_path, partitioning=None)["n"].to_pylist()
        [place] = {number % 400 for number in numbers}
        assert numbers == list(range(place, 400 * 50, 400))
        assert repr(file.partition[0]) == repr(keys[place])


def test_a_temporary_folder_without_room_ends_the_write_and_leaves_no_file(
    make_metadata: MakeMetadata, storage: ArrowStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115
    metadata = make_metadata(SCHEMA, ("id", "identity"))
    rows = pa.table({"id": pa.array(range(50_000), pa.int64())})
    with pytest.raises(StorageError, match=r"temporary folder .* No space left on device.* TMPDIR"):
        list(write_data_files(metadata, storage, rows.to_reader(5_000), buffer_bytes=100_000))
    assert list(storage.list(metadata.location)) == []


def test_write_properties_are_honoured(make_metadata: MakeMetadata, storage: ArrowStorage, tmp_path: Path) -> None:
    properties = {
        "write.data.path": f"{tmp_path}/elsewhere/",
        "write.parquet.compression-codec": "gzip",
        "write.parquet.dict-encoding-enabled.column.name": "false",
        "write.parquet.stats-enabled.column.score": "false",
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.id": "full",
    }
    (file,) = write_data_files(make_metadata(SCHEMA, properties=properties), storage, ROWS)
    assert file.file_path.startswith(f"{tmp_path}/elsewhere/00000-0-")
    chunks = [pq.ParquetFile(file.file_path).metadata.row_group(0).column(index) for index in range(3)]
    assert {chunk.compression for chunk in chunks} == {"GZIP"}
    assert [chunk.has_dictionary_page for chunk in chunks] == [True, False, True]
    assert chunks[2].statistics is None
    assert set(file.lower_bounds) == {1}
    assert set(file.value_counts) == {1, 2, 3}


def test_object_storage_layout_spreads_files_as_java_does(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, ("name", "identity"), properties={"write.object-storage.enabled": "true"})
    files = list(write_data_files(metadata, storage, ROWS))
    for file in files:
        parts = file.file_path.removeprefix(f"{metadata.location}/data/").split("/")
        assert [len(part) for part in parts[:4]] == [4, 4, 4, 8]
        assert set("".join(parts[:4])) <= {"0", "1"}
        assert parts[4].startswith("name_0=")


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"write.format.default": "csv"}, "write.format.default"),
        ({"write.parquet.compression-codec": "lzo"}, "'lzo'"),
    ],
)
def test_properties_that_cannot_be_used_are_refused(
    make_metadata: MakeMetadata, storage: ArrowStorage, properties: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        list(write_data_files(make_metadata(SCHEMA, properties=properties), storage, ROWS))


def test_other_libraries_data_is_taken_through_the_arrow_stream_interface(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    import polars as pl

    frame = pl.DataFrame({"id": [1, 2], "name": ["x", None]})
    (file,) = write_data_files(make_metadata(SCHEMA), storage, frame)
    assert pc.sum(pq.read_table(file.file_path)["id"]).as_py() == 3
    with pytest.raises(TypeMismatchError, match="int"):
        write_data_files(make_metadata(SCHEMA), storage, 5)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (StructType(NestedField(2, "x", TimestampType())), {"x": dt.datetime(2400, 1, 1)}),
        (ListType(2, TimestamptzType(), False), [dt.datetime(1500, 1, 1, tzinfo=dt.timezone.utc)]),
        (MapType(2, TimestampType(), 3, LongType(), False), [(dt.datetime(2400, 1, 1), 1)]),
    ],
    ids=str,
)
def test_nested_times_that_no_reader_of_orc_could_read_are_refused(
    make_metadata: MakeMetadata, storage: ArrowStorage, kind: IcebergType, value: object
) -> None:
    rows = pa.table({"v": pa.array([value], to_arrow_type(kind, field_ids=False))})
    metadata = make_metadata(Schema(NestedField(1, "v", kind)), properties={"write.format.default": "orc"})
    with pytest.raises(UnsupportedError, match="1677 to 2262"):
        list(write_data_files(metadata, storage, rows))
    assert not list(storage.list(metadata.location))


def test_a_column_that_hardly_repeats_a_value_has_no_dictionary(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    count = 30_000
    rows = pa.table({"id": pa.array(range(count), pa.int64()), "name": [f"n{i % 7}" for i in range(count)]})

    def encodings(properties: dict[str, str]) -> dict[str, bool]:
        (file,) = write_data_files(make_metadata(SCHEMA, properties=properties), storage, rows)
        group = pq.read_metadata(storage.filesystem(file.file_path)[1]).row_group(0)
        columns = [group.column(each) for each in range(group.num_columns)]
        return {
            each.path_in_schema: each.has_dictionary_page
            for each in columns
            if each.path_in_schema in rows.schema.names
        }

    assert encodings({}) == {"id": False, "name": True}
    asked = {"write.parquet.dict-encoding-enabled.column.id": "true"}
    assert encodings(asked) == {"id": True, "name": True}


def test_values_that_occur_twice_have_a_dictionary_if_they_are_long(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    """Short ones compress as well by themselves, and whoever skips pages still needs the whole dictionary."""
    rows = pa.table({"id": [i // 2 for i in range(30_000)], "name": [f"{i // 2:040}" for i in range(30_000)]})
    (file,) = write_data_files(make_metadata(SCHEMA), storage, rows)
    group = pq.read_metadata(storage.filesystem(file.file_path)[1]).row_group(0)
    assert [group.column(number).has_dictionary_page for number in (0, 1)] == [False, True]


def test_a_column_that_repeats_values_over_all_but_hardly_within_a_partition_has_no_dictionary(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    rows = pa.table({"id": [number // 4 for number in range(40_000)], "name": [f"p{i % 4}" for i in range(40_000)]})
    for partition in ((), ("name", "identity")):
        for file in write_data_files(make_metadata(SCHEMA, *[partition] if partition else []), storage, rows):
            group = pq.read_metadata(storage.filesystem(file.file_path)[1]).row_group(0)
            assert group.column(0).has_dictionary_page == (not partition)
            assert file.record_count == (10_000 if partition else 40_000)


def test_a_column_whose_order_brings_ever_new_values_has_no_dictionary_that_would_be_given_up(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    """As after a sort or z-order: the first rows repeat values, and the row group has more than a dictionary holds."""
    count = 600_000
    ids = np.sort(np.random.default_rng(1).integers(0, count // 4, count))
    names = pa.array([f"n{number}" for number in range(100)]).take(pa.array(ids // (count // 400)))
    metadata = make_metadata(SCHEMA, properties={"write.parquet.dict-size-bytes": str(1 << 20)})
    for rows, has_dictionary in ((count, False), (count // 6, True)):
        batches = pa.table({"id": ids[:rows], "name": names[:rows]}).to_batches(max_chunksize=50_000)
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        (file,) = write_data_files(metadata, storage, reader)
        group = pq.read_metadata(storage.filesystem(file.file_path)[1]).row_group(0)
        assert group.num_rows == rows
        assert [group.column(number).has_dictionary_page for number in (0, 1)] == [has_dictionary, True]
