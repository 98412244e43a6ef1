from __future__ import annotations

import io
import json
import math
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, InvalidInputError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.manifests.avro_container import codec_name, compress, decompress
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, encode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_schema import avro_name
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    FieldSummary,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    VoidTransform,
)
from hms_iceberg.spec.values.decimals import decimal_bytes


def big_decimal(unscaled: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -10))


ADDED, EXISTING, DELETED = ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED
TYPES = {
    "b": (BooleanType(), st.booleans()),
    "i": (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "l": (LongType(), st.integers(-(2**63), 2**63 - 1)),
    "f": (FloatType(), st.floats(width=32, allow_nan=False)),
    "d": (DoubleType(), st.floats(allow_nan=False)),
    "day": (DateType(), st.integers(-(2**31), 2**31 - 1)),
    "t": (TimeType(), st.integers(0, 86_399_999_999)),
    "ts": (TimestampType(), st.integers(-(2**63), 2**63 - 1)),
    "tz": (TimestamptzType(), st.integers(-(2**63), 2**63 - 1)),
    "ns": (TimestampNanoType(), st.integers(-(2**63), 2**63 - 1)),
    "s": (StringType(), st.text(st.characters(codec="utf-8"))),
    "u": (UUIDType(), st.uuids()),
    "u2": (UUIDType(), st.uuids()),
    "x": (FixedType(3), st.binary(min_size=3, max_size=3)),
    "y": (BinaryType(), st.binary()),
    "dec": (DecimalType(9, 2), st.decimals(-9999999, 9999999, places=2)),
    "dec2": (DecimalType(9, 2), st.decimals(-9999999, 9999999, places=2)),
    "big": (DecimalType(38, 10), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda unscaled: big_decimal(unscaled))),
}
SCHEMA = Schema(*(NestedField(n, name, kind) for n, (name, (kind, _)) in enumerate(TYPES.items(), 1)), schema_id=7)
ALL_TYPES = PartitionSpec(
    *(PartitionField(n, 999 + n, IdentityTransform(), name) for n, name in enumerate(TYPES, 1)), spec_id=3
)
BY_CITY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "city"))
CITY_SCHEMA = Schema(NestedField(1, "city", StringType()))
PARTITIONS = st.tuples(*(st.none() | values for _, values in TYPES.values()))


def data_file(path: str = "s3://b/a.parquet", **more: Any) -> DataFile:
    return DataFile(
        **{"file_path": path, "file_format": "PARQUET", "record_count": 10, "file_size_in_bytes": 99, **more}
    )


def added(file: DataFile, **more: Any) -> ManifestEntry:
    return ManifestEntry(ADDED, more.get("snapshot_id"), more.get("sequence_number"), None, file)


def encode(*entries: ManifestEntry, **more: Any) -> tuple[bytes, ManifestFile]:
    arguments: dict[str, Any] = {
        "schema": CITY_SCHEMA,
        "spec": UNPARTITIONED,
        "content": ManifestContent.DATA,
        "format_version": 2,
        "snapshot_id": 5,
        **more,
    }
    return encode_manifest(entries, **arguments)


def committed(manifest: ManifestFile, sequence_number: int = 9, **more: Any) -> ManifestFile:
    return replace(manifest, sequence_number=sequence_number, manifest_path="s3://b/m.avro", **more)


@settings(max_examples=60, deadline=None)
@given(partition=PARTITIONS)
def test_a_partition_of_any_types_comes_back_as_it_was(partition: tuple[Any, ...]) -> None:
    file = data_file(spec_id=3, partition=partition)
    data, manifest = encode(added(file), schema=SCHEMA, spec=ALL_TYPES)
    (entry,) = decode_manifest(data, committed(manifest))
    assert entry.data_file == file


def test_every_field_of_a_file_comes_back_in_v3() -> None:
    vector = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="s3://b/d.puffin",
        file_format="PUFFIN",
        record_count=3,
        file_size_in_bytes=1000,
        column_sizes={1: 5},
        value_counts={1: 3},
        null_value_counts={1: 0},
        nan_value_counts={1: 0},
        lower_bounds={1: b"a"},
        upper_bounds={1: b"z"},
        key_metadata=b"k",
        split_offsets=(4, 8),
        sort_order_id=0,
        referenced_data_file="s3://b/a.parquet",
        content_offset=4,
        content_size_in_bytes=44,
    )
    data, manifest = encode(added(vector), content=ManifestContent.DELETES, format_version=3)
    assert decode_manifest(data, committed(manifest))[0].data_file == vector


def test_what_an_older_version_does_not_have_is_left_out() -> None:
    file = data_file(first_row_id=5, equality_ids=(1,), sort_order_id=2)
    data, manifest = encode(added(file), format_version=1)
    (entry,) = decode_manifest(data, replace(committed(manifest), sequence_number=0))
    assert entry.data_file == data_file(sort_order_id=2)
    assert (entry.sequence_number, entry.file_sequence_number) == (0, 0)


def test_an_added_file_inherits_snapshot_and_sequence_numbers() -> None:
    data, manifest = encode(added(data_file()), added(data_file("s3://b/b.parquet"), sequence_number=4))
    first, second = decode_manifest(data, committed(manifest, 9))
    assert (first.snapshot_id, first.sequence_number, first.file_sequence_number) == (5, 9, 9)
    assert (second.snapshot_id, second.sequence_number, second.file_sequence_number) == (5, 4, 9)
    assert manifest.sequence_number is None
    assert manifest.min_sequence_number == 4


def test_a_manifest_that_is_not_committed_leaves_sequence_numbers_open() -> None:
    data, manifest = encode(added(data_file()))
    (entry,) = decode_manifest(data, manifest)
    assert (entry.snapshot_id, entry.sequence_number) == (5, None)


def test_a_file_carried_over_must_say_its_sequence_number() -> None:
    entry = ManifestEntry(EXISTING, 1, None, None, data_file())
    with pytest.raises(InvalidInputError, match=r"a\.parquet with status EXISTING"):
        encode(entry)


def test_a_carried_over_file_without_sequence_number_is_corrupt_on_read() -> None:
    data, manifest = encode(added(data_file()))
    container = list(fastavro.reader(io.BytesIO(data)))
    container[0]["status"] = 0
    schema = fastavro.reader(io.BytesIO(data)).writer_schema
    out = io.BytesIO()
    fastavro.writer(out, schema, container)
    with pytest.raises(CorruptManifestError, match="status EXISTING and no sequence number"):
        decode_manifest(out.getvalue(), committed(manifest))
    listed = replace(committed(manifest, 0), added_files_count=None, existing_files_count=None)
    listed = replace(listed, added_rows_count=None, existing_rows_count=None)
    assert decode_manifest(out.getvalue(), listed)[0].sequence_number == 0


def test_row_ids_are_given_to_live_files_without_one_in_order() -> None:
    entries = [
        ManifestEntry(EXISTING, 1, 1, 1, data_file("a", first_row_id=100)),
        ManifestEntry(DELETED, 1, 1, 1, data_file("b")),
        added(data_file("c", record_count=7)),
        added(data_file("d")),
    ]
    data, manifest = encode(*entries, format_version=3)
    row_ids = [entry.data_file.first_row_id for entry in decode_manifest(data, committed(manifest, first_row_id=1000))]
    assert row_ids == [100, None, 1000, 1007]


def test_row_ids_of_a_manifest_from_before_v3_are_null() -> None:
    data, manifest = encode(added(data_file(first_row_id=100)), format_version=3)
    assert decode_manifest(data, committed(manifest))[0].data_file.first_row_id is None
    assert decode_manifest(data, manifest)[0].data_file.first_row_id == 100


def test_the_manifest_row_counts_files_and_rows_by_status() -> None:
    entries = [
        added(data_file("a", record_count=1)),
        ManifestEntry(EXISTING, 1, 3, 3, data_file("b", record_count=2)),
        ManifestEntry(EXISTING, 1, 2, 3, data_file("c", record_count=4)),
        ManifestEntry(DELETED, 5, 1, 1, data_file("d", record_count=8)),
    ]
    data, manifest = encode(*entries, manifest_path="s3://b/m.avro")
    assert manifest == ManifestFile(
        manifest_path="s3://b/m.avro",
        manifest_length=len(data),
        partition_spec_id=0,
        added_snapshot_id=5,
        sequence_number=None,
        min_sequence_number=2,
        added_files_count=1,
        existing_files_count=2,
        deleted_files_count=1,
        added_rows_count=1,
        existing_rows_count=6,
        deleted_rows_count=8,
        partitions=(),
    )


def test_partition_summaries_hold_nulls_nans_and_bounds() -> None:
    schema = Schema(NestedField(1, "f", FloatType()), NestedField(2, "s", StringType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "f"),
        PartitionField(2, 1001, IdentityTransform(), "s"),
        PartitionField(2, 1002, VoidTransform(), "v"),
    )
    partitions = [(0.0, "b", None), (-0.0, None, None), (math.nan, "a", None), (-0.0, "ba", None)]
    _, manifest = encode(*(added(data_file(partition=each)) for each in partitions), schema=schema, spec=spec)
    assert manifest.partitions == (
        FieldSummary(False, True, b"\x00\x00\x00\x80", b"\x00\x00\x00\x00"),
        FieldSummary(True, False, b"a", b"ba"),
        FieldSummary(True, False, None, None),
    )


@pytest.mark.parametrize("codec", ["gzip", "deflate", "uncompressed", "null"])
def test_the_codec_is_honoured(codec: str) -> None:
    data, manifest = encode(added(data_file()), codec=codec)
    reader = fastavro.reader(io.BytesIO(data))
    assert reader.metadata["avro.codec"] == {"gzip": "deflate", "uncompressed": "null"}.get(codec, codec)
    assert len(list(reader)) == 1
    assert len(decode_manifest(data, committed(manifest))) == 1


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="codec 'lzo': expected one of"):
        encode(added(data_file()), codec="lzo")


def test_metadata_names_schema_spec_version_and_content() -> None:
    data, _ = encode(
        added(data_file(partition=("x",))),
        spec=BY_CITY,
        schema=replace_id(CITY_SCHEMA, 4),
        content=ManifestContent.DATA,
    )
    metadata = fastavro.reader(io.BytesIO(data)).metadata
    assert json.loads(metadata["schema"])["schema-id"] == 4
    assert json.loads(metadata["partition-spec"]) == [
        {"name": "city", "transform": "identity", "source-id": 1, "field-id": 1000}
    ]
    assert {key: metadata[key] for key in ("schema-id", "partition-spec-id", "format-version", "content")} == {
        "schema-id": "4",
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "data",
    }


def replace_id(schema: Schema, schema_id: int) -> Schema:
    return Schema(*schema.fields, schema_id=schema_id)


def test_many_entries_are_cut_into_blocks_and_all_come_back() -> None:
    files = [data_file(f"s3://b/{n:04}.parquet", lower_bounds=dict.fromkeys(range(20), b"x" * 100)) for n in range(500)]
    data, manifest = encode(*map(added, files))
    assert [entry.data_file for entry in decode_manifest(data, committed(manifest))] == files
    assert sum(1 for _ in fastavro.block_reader(io.BytesIO(data))) > 10


def test_files_of_another_kind_spec_or_width_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"EQUALITY_DELETES file .* to a manifest of data"):
        encode(added(data_file(content=DataFileContent.EQUALITY_DELETES)))
    with pytest.raises(InvalidInputError, match="partition spec 1 to a manifest of spec 0"):
        encode(added(data_file(spec_id=1)))
    with pytest.raises(InvalidInputError, match="its partition has 1 values, its partition spec 0 fields"):
        encode(added(data_file(partition=(1,))))
    with pytest.raises(InvalidInputError, match="upgrade the table to v2"):
        encode(content=ManifestContent.DELETES, format_version=1)


def test_names_that_avro_does_not_allow_are_made_valid_as_java_does() -> None:
    assert avro_name("my x") == "my_x20x"
    assert avro_name("9x") == "_9x"
    assert avro_name("a.b") == "a_x2Eb"
    assert avro_name("ok_1") == "ok_1"
    assert avro_name("\N{GRINNING FACE}") == "_xD83D_xDE00"


def test_two_partition_fields_whose_names_become_equal_stay_apart() -> None:
    schema = Schema(NestedField(1, "a b", StringType()), NestedField(2, "a_x20b", StringType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "a b"), PartitionField(2, 1001, IdentityTransform(), "a_x20b")
    )
    data, manifest = encode(added(data_file(partition=("x", "y"))), schema=schema, spec=spec)
    assert decode_manifest(data, committed(manifest))[0].data_file.partition == ("x", "y")


def test_decimal_partitions_take_the_fewest_bytes() -> None:
    assert [decimal_bytes(precision) for precision in (1, 2, 3, 9, 10, 18, 19, 38)] == [1, 1, 2, 4, 5, 8, 9, 16]


def test_day_partitions_are_dates_and_buckets_are_ints_in_avro() -> None:
    schema = Schema(NestedField(1, "ts", TimestampType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, DayTransform(), "ts_day"), PartitionField(1, 1001, BucketTransform(4), "ts_bucket")
    )
    data, _ = encode(added(data_file(partition=(19000, 3))), schema=schema, spec=spec)
    written = json.loads(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])
    data_file_type = next(field["type"] for field in written["fields"] if field["name"] == "data_file")
    partition = next(field["type"] for field in data_file_type["fields"] if field["name"] == "partition")
    assert [(field["type"], field["field-id"]) for field in partition["fields"]] == [
        (["null", {"type": "int", "logicalType": "date"}], 1000),
        (["null", "int"], 1001),
    ]


@pytest.mark.parametrize("cut", [3, 40, 600, -1, -17, -40])
def test_a_manifest_that_is_cut_off_is_corrupt_and_named(cut: int) -> None:
    data, manifest = encode(added(data_file()))
    with pytest.raises(CorruptManifestError, match=r"manifest s3://b/m\.avro"):
        decode_manifest(data[:cut], committed(manifest))


def test_a_changed_byte_in_a_block_is_corrupt() -> None:
    data, manifest = encode(*(added(data_file(f"s3://b/{n}")) for n in range(50)))
    damaged = bytearray(data)
    damaged[-120:-40] = b"\xff" * 80
    with pytest.raises(CorruptManifestError, match=r"manifest s3://b/m\.avro"):
        decode_manifest(bytes(damaged), committed(manifest))


def test_other_names_and_missing_optional_fields_are_read_by_field_id() -> None:
    schema = {
        "type": "record",
        "name": "entry",
        "fields": [
            {"name": "state", "type": "int", "field-id": 0},
            {
                "name": "file",
                "field-id": 2,
                "type": {
                    "type": "record",
                    "name": "f",
                    "fields": [
                        {"name": "size", "type": "long", "field-id": 104},
                        {"name": "rows", "type": "long", "field-id": 103},
                        {"name": "path", "type": "string", "field-id": 100},
                        {"name": "format", "type": "string", "field-id": 101},
                        {"name": "extra", "type": "string", "field-id": 9999},
                        {"name": "p", "type": {"type": "record", "name": "p", "fields": []}, "field-id": 102},
                    ],
                },
            },
        ],
    }
    record = {"state": 1, "file": {"size": 99, "rows": 10, "path": "a", "format": "parquet", "extra": "?", "p": {}}}
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    manifest = ManifestFile(manifest_path="m", manifest_length=1, partition_spec_id=0, added_snapshot_id=8)
    assert decode_manifest(out.getvalue(), manifest) == [ManifestEntry(ADDED, 8, 0, 0, data_file("a"))]


def test_a_schema_without_a_required_field_is_corrupt() -> None:
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "x", "fields": [{"name": "status", "type": "int"}]}, [])
    manifest = ManifestFile(manifest_path="m", manifest_length=1, partition_spec_id=0, added_snapshot_id=8)
    with pytest.raises(CorruptManifestError, match="lacks data_file"):
        decode_manifest(out.getvalue(), manifest)


# ------------------------------------------------------------------------------------------ manifest lists


def manifest_file(**more: Any) -> ManifestFile:
    arguments: dict[str, Any] = {
        "manifest_path": "s3://b/m.avro",
        "manifest_length": 10,
        "partition_spec_id": 0,
        "added_snapshot_id": 5,
        "sequence_number": None,
        "min_sequence_number": None,
        "added_files_count": 1,
        "existing_files_count": 2,
        "deleted_files_count": 3,
        "added_rows_count": 100,
        "existing_rows_count": 20,
        "deleted_rows_count": 3,
        "partitions": (FieldSummary(True, None, b"a", b"b"), FieldSummary(False, True)),
        **more,
    }
    return ManifestFile(**arguments)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_manifest_list_comes_back_with_what_the_commit_assigns(version: int) -> None:
    data, next_row_id = encode_manifest_list([manifest_file(key_metadata=b"k")], version, 5, 4, 9, next_row_id=1000)
    numbers = {1: 0, 2: 9, 3: 9}
    expected = manifest_file(
        key_metadata=b"k",
        sequence_number=numbers[version],
        min_sequence_number=numbers[version],
        first_row_id=1000 if version == 3 else None,
    )
    assert decode_manifest_list(data) == [expected]
    assert next_row_id == (1120 if version == 3 else None)
    metadata = fastavro.reader(io.BytesIO(data)).metadata
    assert (metadata["snapshot-id"], metadata["parent-snapshot-id"], metadata["format-version"]) == (
        "5",
        "4",
        str(version),
    )
    assert metadata.get("sequence-number") == (None if version == 1 else "9")
    assert metadata.get("first-row-id") == ("1000" if version == 3 else None)


def test_row_ids_are_assigned_to_data_manifests_without_one_in_order() -> None:
    manifests = [
        manifest_file(manifest_path="a"),
        manifest_file(manifest_path="b", content=ManifestContent.DELETES),
        manifest_file(manifest_path="c", first_row_id=7, sequence_number=1, min_sequence_number=1),
        manifest_file(manifest_path="d", sequence_number=1, min_sequence_number=1, added_snapshot_id=1),
    ]
    data, next_row_id = encode_manifest_list(manifests, 3, 5, None, 9, next_row_id=1000)
    read = decode_manifest_list(data)
    assert [each.first_row_id for each in read] == [1000, None, 7, 1120]
    assert next_row_id == 1240
    assert fastavro.reader(io.BytesIO(data)).metadata["parent-snapshot-id"] == "null"


def test_sequence_numbers_that_a_manifest_has_are_kept() -> None:
    older = manifest_file(sequence_number=3, min_sequence_number=1, added_snapshot_id=2)
    carried = manifest_file(min_sequence_number=2)
    data, _ = encode_manifest_list([older, carried], 2, 5, 4, 9)
    numbers = [(each.sequence_number, each.min_sequence_number) for each in decode_manifest_list(data)]
    assert numbers == [(3, 1), (9, 2)]


def test_a_manifest_of_another_snapshot_without_sequence_number_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="has no sequence number, but was added by snapshot 6"):
        encode_manifest_list([manifest_file(added_snapshot_id=6)], 2, 5, 4, 9)


def test_what_a_format_version_cannot_list_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"delete manifest .* v1"):
        encode_manifest_list([manifest_file(content=ManifestContent.DELETES)], 1, 5, 4, 9)
    with pytest.raises(InvalidInputError, match="next row id"):
        encode_manifest_list([], 3, 5, 4, 9)
    with pytest.raises(InvalidInputError, match="requires added_files_count"):
        encode_manifest_list([manifest_file(added_files_count=None)], 2, 5, 4, 9)


def test_a_manifest_list_with_names_of_old_writers_is_read_by_field_id() -> None:
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {"name": "manifest_path", "type": "string", "field-id": 500},
            {"name": "manifest_length", "type": "long", "field-id": 501},
            {"name": "partition_spec_id", "type": "int", "field-id": 502},
            {"name": "added_snapshot_id", "type": ["null", "long"], "field-id": 503},
            {"name": "added_data_files_count", "type": ["null", "int"], "field-id": 504},
        ],
    }
    record = {
        "manifest_path": "m",
        "manifest_length": 5,
        "partition_spec_id": 2,
        "added_snapshot_id": 8,
        "added_data_files_count": 4,
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    (read,) = decode_manifest_list(out.getvalue())
    assert (read.added_files_count, read.existing_files_count, read.content) == (4, None, ManifestContent.DATA)
    assert (read.sequence_number, read.has_live_files(), read.partitions) == (0, True, None)


def test_a_manifest_list_that_is_no_avro_file_is_corrupt_and_named() -> None:
    with pytest.raises(CorruptManifestError, match=r"manifest list s3://b/snap\.avro: it is not an Avro file"):
        decode_manifest_list(b"PAR1", "s3://b/snap.avro")


def test_a_uuid_is_ordered_as_unsigned_bytes_in_a_summary() -> None:
    schema = Schema(NestedField(1, "u", UUIDType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "u"))
    low, high = uuid.UUID(int=1), uuid.UUID(int=2**128 - 1)
    _, manifest = encode(*(added(data_file(partition=(each,))) for each in (high, low)), schema=schema, spec=spec)
    assert manifest.partitions is not None
    assert (manifest.partitions[0].lower_bound, manifest.partitions[0].upper_bound) == (low.bytes, high.bytes)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "bzip2"])
def test_a_block_may_only_become_so_large(codec: str) -> None:
    raw = bytes(range(256)) * 400
    packed = compress(raw, codec_name(codec))
    assert decompress(packed, codec, "m.avro", len(raw)) == raw
    with pytest.raises(CorruptFileError, match=r"m\.avro: a block cannot be decompressed"):
        decompress(packed, codec, "m.avro", len(raw) - 1)
    with pytest.raises(CorruptFileError, match=r"m\.avro: a block cannot be decompressed"):
        decompress(packed[:-9], codec, "m.avro", len(raw))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "bzip2"])
def test_a_block_that_cannot_be_decompressed_is_a_corrupt_file(codec: str) -> None:
    with pytest.raises(CorruptFileError, match=r"m\.avro: a block cannot be decompressed"):
        decompress(b"\xff\x01 this was never compressed", codec, "m.avro", 1000)
