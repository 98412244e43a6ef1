from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow, to_arrow_type
from hms_iceberg.arrow.formats.file_layout import FileLayout
from hms_iceberg.arrow.formats.orc.orc_early_times import read_timestamps
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.formats.parquet_writer import ParquetContentWriter, parquet_options, repetitions
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.errors import ConfigurationError, UnsupportedError
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
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from tests.support.arrow_tables import FileTable

MakeMetadata = Callable[..., TableMetadata]
FORMATS = ("parquet", "orc", "avro")
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the key"),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "score", DoubleType()),
    NestedField(6, "price", DecimalType(12, 2)),
    NestedField(7, "wide", DecimalType(38, 10)),
    NestedField(8, "day", DateType()),
    NestedField(9, "time", TimeType()),
    NestedField(10, "at", TimestampType()),
    NestedField(11, "at_utc", TimestamptzType()),
    NestedField(12, "my name", StringType()),
    NestedField(13, "raw", BinaryType()),
    NestedField(14, "code", FixedType(4)),
    NestedField(15, "uid", UUIDType()),
    NestedField(16, "tags", ListType(30, StringType(), element_required=False)),
    NestedField(17, "props", MapType(31, StringType(), 32, LongType(), value_required=False)),
    NestedField(18, "by_number", MapType(33, IntegerType(), 34, StringType(), value_required=True)),
    NestedField(
        19,
        "place",
        StructType(
            NestedField(35, "x", DoubleType()),
            NestedField(36, "code", FixedType(2)),
            NestedField(37, "times", ListType(38, TimeType(), element_required=False)),
            NestedField(39, "deep", StructType(NestedField(40, "uid", UUIDType()))),
        ),
    ),
    NestedField(20, "nothing", UnknownType()),
)


def full_row(key: int) -> dict[str, Any]:
    return {
        "id": key,
        "flag": key % 2 == 0,
        "small": -key,
        "ratio": key / 2,
        "score": float("nan") if key % 4 == 0 else -key / 3,
        "price": Decimal(-key) / 100,
        "wide": Decimal(10) ** 27 + key,
        "day": dt.date(1969, 12, 30) + dt.timedelta(days=key),
        "time": dt.time(1, 2, 3, key),
        "at": dt.datetime(2262, 5, 1) + dt.timedelta(days=key),
        "at_utc": dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(days=key),
        "my name": f"ä{key}",
        "raw": bytes([key % 256, 255]),
        "code": key.to_bytes(4, "big"),
        "uid": uuid.UUID(int=key << 64).bytes,
        "tags": [None, f"t{key}"] if key % 3 else [],
        "props": [(f"k{key}", None), ("x", key)],
        "by_number": [(key, "a"), (-key - 1, "b")],
        "place": {"x": 1.5, "code": b"ab", "times": [dt.time(2), None], "deep": {"uid": uuid.UUID(int=key).bytes}}
        if key % 2
        else {"x": None, "code": None, "times": None, "deep": None},
    }


def rows(count: int) -> pa.Table:
    struct = pa.struct(
        [
            ("x", pa.float64()),
            ("code", pa.binary(2)),
            ("times", pa.list_(pa.time64("us"))),
            ("deep", pa.struct([("uid", pa.binary(16))])),
        ]
    )
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), False),
            ("flag", pa.bool_()),
            ("small", pa.int32()),
            ("ratio", pa.float32()),
            ("score", pa.float64()),
            ("price", pa.decimal128(12, 2)),
            ("wide", pa.decimal128(38, 10)),
            ("day", pa.date32()),
            ("time", pa.time64("us")),
            ("at", pa.timestamp("us")),
            ("at_utc", pa.timestamp("us", tz="UTC")),
            ("my name", pa.string()),
            ("raw", pa.binary()),
            ("code", pa.binary(4)),
            ("uid", pa.binary(16)),
            ("tags", pa.list_(pa.string())),
            ("props", pa.map_(pa.string(), pa.int64())),
            ("by_number", pa.map_(pa.int32(), pa.field("value", pa.string(), False))),
            ("place", struct),
        ]
    )
    return pa.Table.from_pylist([*(full_row(key) for key in range(count)), {"id": count}], schema=schema)


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_type_comes_back_as_it_was_written(tmp_path: Path, file_format: str) -> None:
    table = FileTable(tmp_path, SCHEMA, properties={"write.format.default": file_format})
    (file,) = table.append(rows(20))
    assert file.file_format == file_format.upper()
    assert file.file_path.endswith(f".{file_format}")
    assert file.file_size_in_bytes == table.storage.length(file.file_path)
    assert str(table.read().drop(["nothing"]).to_pylist()) == str(_with_uuids(rows(20).to_pylist()))


def _with_uuids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for item in items:
        if item["uid"] is not None:
            item["uid"] = uuid.UUID(bytes=item["uid"])
        deep = (item["place"] or {}).get("deep")
        if deep:
            deep["uid"] = uuid.UUID(bytes=deep["uid"])
    return items


@pytest.mark.parametrize("file_format", FORMATS)
def test_structs_in_structs_keep_their_rows_where_some_are_null(tmp_path: Path, file_format: str) -> None:
    def pair(first_id: int) -> StructType:
        inner = StructType(NestedField(first_id + 2, "n", IntegerType()))
        return StructType(NestedField(first_id, "inner", inner), NestedField(first_id + 1, "own", IntegerType(), True))

    schema = Schema(
        NestedField(1, "pair", pair(10)), NestedField(2, "pairs", ListType(3, pair(20), element_required=False))
    )
    properties = {"write.format.default": file_format, "write.parquet.row-group-limit": "3"}
    whole = [{"inner": None if key % 2 else {"n": key if key % 5 else None}, "own": key} for key in range(40)]
    some = [None if key % 3 == 1 else pair for key, pair in enumerate(whole)]
    for name, pairs in (("whole", whole), ("some", some)):
        columns = {"pair": pairs, "pairs": [None if key % 7 == 0 else pairs[key : key + key % 4] for key in range(40)]}
        table = FileTable(tmp_path / name, schema, properties=properties)
        table.append(pa.table(columns, schema=to_arrow(schema)))
        assert table.read().to_pydict() == columns


@pytest.mark.parametrize("file_format", FORMATS)
def test_dates_may_lie_beyond_those_of_python(tmp_path: Path, file_format: str) -> None:
    days = pa.array([-(2**31), 0, 2**31 - 1], pa.int32())
    table = FileTable(
        tmp_path, Schema(NestedField(1, "day", DateType())), properties={"write.format.default": file_format}
    )
    table.append(pa.table({"day": days.view(pa.date32())}))
    assert table.read()["day"].cast(pa.int32()).to_pylist() == days.to_pylist()


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_metrics_are_those_of_parquet(tmp_path: Path, file_format: str) -> None:
    files = []
    for name in ("parquet", file_format):
        properties = {"write.format.default": name, "write.metadata.metrics.column.my name": "counts"}
        table = FileTable(tmp_path / name, SCHEMA, properties=properties)
        files += table.append(rows(20))
    parquet, other = files
    for name in ("record_count", "nan_value_counts", "lower_bounds", "upper_bounds"):
        assert getattr(other, name) == getattr(parquet, name), name
    flat = set(parquet.value_counts or {})
    assert {key: (other.value_counts or {})[key] for key in flat} == parquet.value_counts
    assert {key: (other.null_value_counts or {})[key] for key in flat} == parquet.null_value_counts


@pytest.mark.parametrize("file_format", FORMATS)
def test_nested_columns_come_back_from_every_batch_of_several(tmp_path: Path, file_format: str) -> None:
    structs = [StructType(NestedField(n, "x", DoubleType()), NestedField(n + 1, "y", StringType())) for n in (2, 6)]
    schema = Schema(NestedField(1, "s", structs[0]), NestedField(4, "l", ListType(5, structs[1], False)))
    properties = {"write.format.default": file_format, "write.parquet.row-group-limit": "2"}
    rows = [
        {"s": {"x": 1.0, "y": None}, "l": [{"x": None, "y": "a"}]},
        {"s": None, "l": []},
        {"s": {"x": None, "y": "b"}, "l": None},
        {"s": {"x": 2.0, "y": "c"}, "l": [{"x": 3.0, "y": None}, None]},
        {"s": None, "l": [None, {"x": 4.0, "y": "d"}]},
    ]
    table = FileTable(tmp_path / "t", schema, properties=properties)
    table.append(pa.Table.from_pylist(rows))
    assert table.read().to_pylist() == rows


@pytest.mark.parametrize("file_format", FORMATS)
def test_dates_and_times_that_python_cannot_hold_are_written_with_bounds(tmp_path: Path, file_format: str) -> None:
    schema = Schema(NestedField(1, "day", DateType()), NestedField(2, "at", TimestampType()))
    table = FileTable(tmp_path / "t", schema, properties={"write.format.default": file_format})
    days, times = [0, 2**31 - 1], [0, 2**63 - 1_000_000]
    columns = {"day": pa.array(days, pa.int32()).view(pa.date32()), "at": pa.array(times).view(pa.timestamp("us"))}
    (file,) = table.append(pa.table(columns))
    assert file.upper_bounds == {1: days[1].to_bytes(4, "little"), 2: times[1].to_bytes(8, "little")}
    assert table.read()["day"].cast(pa.int32()).to_pylist() == days


def test_orc_types_carry_field_ids_and_what_orc_lacks(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, properties={"write.format.default": "orc"})
    (file,) = write_data_files(metadata, storage, rows(3))
    found = {field.name: field.metadata for field in orc.ORCFile(file.file_path).schema}
    assert found["id"][b"iceberg.id"] == b"1"
    assert found["id"][b"iceberg.required"] == b"true"
    assert found["time"][b"iceberg.long-type"] == b"TIME"
    assert found["uid"][b"iceberg.binary-type"] == b"UUID"
    assert (found["code"][b"iceberg.binary-type"], found["code"][b"iceberg.length"]) == (b"FIXED", b"4")
    assert "my_x20name" in found
    assert "nothing" not in found


@pytest.mark.parametrize(
    ("kind", "codec"),
    [(TimestampType(), "zlib"), (TimestamptzType(), "none"), (TimestampNanoType(), "zstd")],
    ids=str,
)
def test_orc_holds_fractions_of_seconds_before_1970_as_its_own_writers_do(
    tmp_path: Path, kind: IcebergType, codec: str
) -> None:
    """Read by pyarrow's reader, which follows the format's rules, and by ours from the streams themselves."""
    unit = 1_000 if isinstance(kind, TimestampNanoType) else 1
    random = np.random.default_rng(7)
    times = random.integers(-3_000_000_000 * 10**6, 3_000_000_000 * 10**6, 20_000) * unit
    odd = [-1_500_000, -1_999_500, -2_000_000, -1_000_000, -1_000_001, -999_500, -86_400_000_001, 0, 1, 1_500_000]
    times[:10] = np.array(odd) * unit
    if unit > 1:
        times[10:13] = [-1_999_999_999, -2_000_000_001, -(2**62) - 1]
    times[(times < 0) & (times > -999_001 * unit) & (times != -999_500 * unit)] = 0
    valid = random.random(20_000) > 0.1
    arrow = to_arrow_type(kind, field_ids=False)
    array = pa.array(times, pa.int64(), mask=~valid).view(arrow)
    column = pa.array(
        [None if n % 5 == 0 else {"at": value} for n, value in enumerate(array)], pa.struct([("at", arrow)])
    )
    lists = pa.array([None if n % 7 == 0 else [value, None] for n, value in enumerate(array)], pa.list_(arrow))
    rows = pa.table({"at": array, "s": column, "n": pa.array(range(20_000), pa.int32()), "l": lists})
    schema = Schema(
        NestedField(1, "at", kind),
        NestedField(2, "s", StructType(NestedField(3, "at", kind))),
        NestedField(4, "n", IntegerType()),
        NestedField(5, "l", ListType(6, kind, False)),
    )
    properties = {
        "write.format.default": "orc",
        "write.orc.compression-codec": codec,
        "write.orc.stripe-size-bytes": "20000",
    }
    table = FileTable(tmp_path / "t", schema, properties=properties)

    (file,) = table.append(rows)

    read = orc.ORCFile(file.file_path)
    assert read.nstripes > 1 and file.split_offsets is not None and len(file.split_offsets) == read.nstripes
    for found in (table.read(), read.read()):
        assert found.column("n").to_pylist() == list(range(20_000))
        for name in ("at", "s", "l"):
            wanted = rows.column(name).cast(found.schema.field(name).type)
            assert found.column(name).combine_chunks().equals(wanted.combine_chunks()), name
    with pa.OSFile(file.file_path.removeprefix("file:")) as opened:
        layout = OrcLayout(opened, opened.size(), file.file_path)
        zoned = isinstance(kind, TimestamptzType)
        parts = [read_timestamps(layout, index, "at", zoned, "f") for index in range(read.nstripes)]
    micros = pa.concat_arrays(parts).cast(pa.int64())
    assert micros.equals(pa.array(times // unit, pa.int64(), mask=~valid))
    assert file.lower_bounds is not None and file.lower_bounds[1] == int(times[valid].min()).to_bytes(
        8, "little", signed=True
    )


def test_orc_refuses_the_last_second_before_1970_of_which_it_has_no_form(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    schema = Schema(NestedField(1, "a", StructType(NestedField(2, "at", TimestampType()))))
    metadata = make_metadata(schema, properties={"write.format.default": "orc"})
    kind = pa.struct([("at", pa.timestamp("us"))])
    with pytest.raises(UnsupportedError, match=r"a\.at.*a second before 1970"):
        list(write_data_files(metadata, storage, pa.table({"a": pa.array([{"at": -999_000}, None], kind)})))
    assert list(storage.list(metadata.location)) == []


def test_avro_files_have_field_ids_at_every_level(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, properties={"write.format.default": "avro"})
    (file,) = write_data_files(metadata, storage, rows(3))
    reader = fastavro.reader(io.BytesIO(storage.read(file.file_path)))
    assert json.loads(reader.metadata["iceberg.schema"])["fields"][0]["id"] == 1
    fields = {field["name"]: field for field in reader.writer_schema["fields"]}  # type: ignore[index]
    assert fields["id"]["field-id"] == 1
    assert fields["my_x20name"]["field-id"] == 12
    tags, props, numbered = (fields[name]["type"][1] for name in ("tags", "props", "by_number"))
    assert tags["element-id"] == 30
    assert (props["key-id"], props["value-id"]) == (31, 32)
    assert [each["field-id"] for each in numbered["items"]["fields"]] == [33, 34]
    assert numbered["logicalType"] == "map"
    assert len(list(reader)) == 4


def test_avro_has_no_form_for_nothing_it_knows(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    schema = Schema(NestedField(1, "at", TimestampNanoType()))
    metadata = make_metadata(schema, properties={"write.format.default": "avro"})
    (file,) = write_data_files(metadata, storage, pa.table({"at": pa.array([-1, 1], pa.timestamp("ns"))}))
    assert file.record_count == 2


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_roll_at_the_target_size(make_metadata: MakeMetadata, storage: ArrowStorage, file_format: str) -> None:
    properties = {
        "write.format.default": file_format,
        "write.target-file-size-bytes": "20000",
        "write.orc.stripe-size-bytes": "10000",
        "write.orc.compression-codec": "none",
    }
    metadata = make_metadata(
        Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType())), properties=properties
    )
    table = pa.table({"id": pa.array(range(20_000), pa.int64()), "s": [uuid.uuid4().hex for _ in range(20_000)]})
    files = list(write_data_files(metadata, storage, table))
    assert len(files) > 3
    assert sum(file.record_count for file in files) == 20_000
    for file in files if file_format == "orc" else ():
        assert file.split_offsets is not None and len(file.split_offsets) == orc.ORCFile(file.file_path).nstripes
        assert [Path(file.file_path).read_bytes()[offset] for offset in file.split_offsets]
        assert file.split_offsets[0] == 3 and file.split_offsets[-1] < file.file_size_in_bytes


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"write.format.default": "orc", "write.orc.compression-codec": "lzo"}, "'lzo'"),
        ({"write.format.default": "orc", "write.orc.compression-strategy": "fast"}, "'fast'"),
        ({"write.format.default": "orc", "write.orc.bloom.filter.fpp": "2"}, "fpp"),
        ({"write.format.default": "avro", "write.avro.compression-codec": "lzo"}, "'lzo'"),
    ],
)
def test_properties_that_cannot_be_used_are_refused(
    make_metadata: MakeMetadata, storage: ArrowStorage, properties: dict[str, str], words: str
) -> None:
    metadata = make_metadata(Schema(NestedField(1, "id", LongType())), properties=properties)
    with pytest.raises(ConfigurationError, match=words):
        list(write_data_files(metadata, storage, pa.table({"id": [1]})))
    assert list(storage.list(metadata.location)) == []


@pytest.mark.parametrize("codec", ["zlib", "snappy", "lz4", "zstd", "none"])
def test_orc_codecs(make_metadata: MakeMetadata, storage: ArrowStorage, codec: str) -> None:
    properties = {"write.format.default": "orc", "write.orc.compression-codec": codec}
    metadata = make_metadata(Schema(NestedField(1, "id", LongType())), properties=properties)
    (file,) = write_data_files(metadata, storage, pa.table({"id": [1]}))
    assert orc.ORCFile(file.file_path).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "uncompressed"])
def test_avro_codecs(tmp_path: Path, codec: str) -> None:
    properties = {"write.format.default": "avro", "write.avro.compression-codec": codec}
    table = FileTable(tmp_path, Schema(NestedField(1, "id", LongType())), properties=properties)
    table.append(pa.table({"id": range(1000)}))
    assert table.read()["id"].to_pylist() == list(range(1000))


@pytest.mark.parametrize("file_format", FORMATS)
def test_no_rows_make_no_file(make_metadata: MakeMetadata, storage: ArrowStorage, file_format: str) -> None:
    metadata = make_metadata(Schema(NestedField(1, "id", LongType())), properties={"write.format.default": file_format})
    assert list(write_data_files(metadata, storage, pa.table({"id": pa.array([], pa.int64())}))) == []


@pytest.mark.parametrize("streamed", [False, True])
def test_a_table_in_memory_is_not_copied_and_a_stream_of_slices_lets_the_memory_of_all_rows_go(
    make_metadata: MakeMetadata, storage: ArrowStorage, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    rows = pa.record_batch({"id": pa.array(range(400_000))})
    buffer, slices = rows["id"].buffers()[1], [rows.slice(start, 100_000) for start in range(0, 400_000, 100_000)]
    written: list[bool] = []
    write = ParquetContentWriter.write_row_group

    def watched(self: ParquetContentWriter, batches: list[pa.RecordBatch]) -> None:
        found = [batch.column(0).buffers()[1].address for batch in batches]
        written.extend(buffer.address <= each < buffer.address + buffer.size for each in found)
        write(self, batches)

    monkeypatch.setattr(ParquetContentWriter, "write_row_group", watched)
    metadata = make_metadata(Schema(NestedField(1, "id", LongType())))
    given = pa.RecordBatchReader.from_batches(rows.schema, slices) if streamed else pa.Table.from_batches(slices)
    files = list(write_data_files(metadata, storage, given))
    assert [file.record_count for file in files] == [400_000]
    assert written == [not streamed] * 4


def test_rows_of_a_partition_do_not_keep_those_of_all_others_in_memory(
    make_metadata: MakeMetadata, storage: ArrowStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    write = ParquetContentWriter.write_row_group

    def watched(self: ParquetContentWriter, batches: list[pa.RecordBatch]) -> None:
        held.extend(batch.get_total_buffer_size() > 2 * batch.nbytes for batch in batches)
        write(self, batches)

    monkeypatch.setattr(ParquetContentWriter, "write_row_group", watched)
    metadata = make_metadata(Schema(NestedField(1, "id", LongType())), ("id", BucketTransform(10)))
    assert len(list(write_data_files(metadata, storage, pa.table({"id": range(100_000)})))) == 10
    assert held == [False] * 10


def test_the_sample_that_decides_on_dictionaries_is_the_same_however_rows_are_cut() -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
    rows = pa.record_batch(
        [pa.array(range(90_000)), pa.array([f"text {key % 977}" for key in range(90_000)])], ["id", "s"]
    )
    whole = repetitions(schema, [rows])
    assert set(whole) == {"id", "s"}
    for size in (1, 777, 30_000, 50_000):
        cut = [rows.slice(start, size) for start in range(0, 90_000, size)] if size > 1 else [rows.slice(0, 0), rows]
        assert repetitions(schema, cut) == whole


@pytest.mark.parametrize("precision", [9, 18, 38])
@pytest.mark.parametrize("different", [3, 977, 10**6])
def test_decimals_repeat_as_the_numbers_do_that_they_are_made_of(precision: int, different: int) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "d", DecimalType(precision, 0)))
    numbers = [None if key % 11 == 0 else key * 7919 % different - different // 2 for key in range(30_000)]
    scale = 2**64 if precision > 18 else 1  # the lower half of such values is always the same
    digits = [None if each is None else Decimal(each) * scale for each in numbers]
    rows = pa.record_batch([pa.array(numbers), pa.array(digits, pa.decimal128(precision, 0))], ["id", "d"])
    found = repetitions(schema, [rows.slice(5)])
    assert (found["d"].population, found["d"].growth) == (found["id"].population, found["id"].growth)
    nulls = rows.set_column(1, "d", pa.nulls(rows.num_rows, rows["d"].type))
    assert repetitions(schema, [nulls])["d"].population == 0


def test_bloom_filters_leave_out_row_groups_and_take_the_memory_that_these_need(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    on = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in ("id", "name")}
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = FileTable(tmp_path, schema, properties={**on, "write.parquet.row-group-limit": "100"})
    before = pa.default_memory_pool().max_memory()
    numbers = [number * 7919 % 10_007 for number in range(2_000)]
    [file] = table.append(pa.table({"id": numbers, "name": [f"n{each}" for each in numbers]}))
    assert pa.default_memory_pool().max_memory() - before < 64 * 2**20, "of 40 filters"
    path = file.file_path.removeprefix("file:")
    for number in (numbers[0], numbers[-1], 10_006 * 3):
        for column, value in (("id", str(number)), ("name", f"'n{number}'")):
            probe = f"select bloom_filter_excludes from parquet_bloom_probe('{path}', '{column}', {value})"
            excluded = [row[0] for row in duckdb.sql(probe).fetchall()]
            assert len(excluded) == 20
            home = numbers.index(number) // 100 if number in numbers else None
            assert [place for place, each in enumerate(excluded) if not each and place != home][2:] == []
            assert home is None or not excluded[home]


LARGE_GROUPS = {"write.parquet.row-group-limit": "9000000"}


@pytest.mark.parametrize(
    ("properties", "rate", "distinct"),
    [
        ({}, 0.01, 866_454),
        ({"write.parquet.row-group-limit": "7"}, 0.01, 7),
        ({"write.parquet.bloom-filter-max-bytes": "1024"}, 0.01, 846),
        ({"write.parquet.bloom-filter-ndv.column.id": "300"}, 0.01, 300),
        ({"write.parquet.bloom-filter-ndv.column.id": "3000000"}, 0.01, 866_454),
        ({"write.parquet.bloom-filter-fpp.column.id": "0.5", **LARGE_GROUPS}, 0.5, 2_609_867),
    ],
)
def test_a_bloom_filter_is_made_for_as_many_values_as_its_size_and_a_row_group_allow(
    tmp_path: Path, properties: dict[str, str], rate: float, distinct: int
) -> None:
    schema = Schema(NestedField(1, "id", LongType()))
    on = {"write.parquet.bloom-filter-enabled.column.id": "true"}
    options = parquet_options(schema, FileLayout(schema), {**on, **properties})["bloom_filter_options"]
    assert options == {"id": {"fpp": rate, "ndv": pytest.approx(distinct, abs=2)}}
