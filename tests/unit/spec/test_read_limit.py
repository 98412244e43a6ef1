"""Small files that hold very much are refused before it is made, by an error that names the setting."""

from __future__ import annotations

import gzip
import io
import json
import time
import tracemalloc
from typing import Any

import pytest

from hms_iceberg.errors import ConfigurationError, CorruptFileError, CorruptManifestError, CorruptMetadataError
from hms_iceberg.spec.manifests.avro_container import read_container, read_contents, write_container
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json, metadata_to_dict
from hms_iceberg.spec.metadata.view_metadata import view_metadata_from_json
from hms_iceberg.spec.read_limit import READ_LIMIT, ReadLimit
from tests.support.tables import metadata

MEBIBYTE = 1 << 20


def gzipped(unit: bytes, size: int) -> bytes:
    """A small file of a JSON list that is so large."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        file.write(b"[")
        for _ in range(size // (len(unit) * MEBIBYTE)):
            file.write(unit * MEBIBYTE)
        file.write(b"1]")
    return packed.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        gzipped(b" ", 256 * MEBIBYTE),  # of one value
        gzipped(b"[],", 32 * MEBIBYTE),  # of ten million
        b"[" + b"{}," * (4 * MEBIBYTE) + b"1]",  # not compressed
        gzip.compress(b"[") + gzip.compress(b" " * 8 * MEBIBYTE) * 16 + gzip.compress(b"]"),
    ],
    ids=["spaces", "lists", "plain", "members"],
)
@pytest.mark.parametrize("read", [metadata_from_json, view_metadata_from_json])
def test_metadata_that_would_take_too_much_memory_is_refused_before_it_does(read: Any, data: bytes) -> None:
    limit = ReadLimit(128 * MEBIBYTE)
    tracemalloc.start()
    with pytest.raises(CorruptMetadataError, match=r"s3://b/m\.json.*io\.read-limit-bytes"):
        read(data, "s3://b/m.json", limit=limit)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 * MEBIBYTE


def test_no_more_is_inflated_than_the_limit_allows() -> None:
    data = gzipped(b" ", 60 * MEBIBYTE)
    tracemalloc.start()
    with pytest.raises(CorruptMetadataError, match=READ_LIMIT):
        metadata_from_json(data, limit=ReadLimit(16 * MEBIBYTE))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 32 * MEBIBYTE


def test_a_file_of_very_many_small_members_is_read_in_time() -> None:
    data = gzip.compress(b" ", mtime=0) * 100_000 + gzip.compress(b"{}")
    started = time.process_time()
    with pytest.raises(CorruptMetadataError, match="format-version"):
        metadata_from_json(data)
    assert time.process_time() - started < 10


def test_metadata_nested_a_million_deep_is_an_error() -> None:
    with pytest.raises(CorruptMetadataError):
        metadata_from_json(b"[" * MEBIBYTE)


def test_metadata_of_70_000_snapshots_are_read_within_the_limit_of_a_server() -> None:
    data = metadata_to_dict(metadata())
    summary = {f"total-of-something-{number}": "1234567890" for number in range(20)}
    snapshots = [
        {
            "snapshot-id": 1_000_000_000_000_000_000 + number,
            "sequence-number": number + 1,
            "timestamp-ms": 1_700_000_000_000 + number,
            "manifest-list": f"s3://bucket/warehouse/db.db/table/metadata/snap-{number:020}-1-0123456789abcdef.avro",
            "summary": {"operation": "append", **summary},
            "schema-id": 0,
        }
        for number in range(700)
    ]
    one = len(json.dumps(snapshots).encode()) / 700
    text = json.dumps(
        {**data, "snapshots": snapshots, "last-sequence-number": 700, "last-updated-ms": 1_800_000_000_000}
    )
    assert len(metadata_from_json(text.encode(), limit=ReadLimit((1 << 30) // 100)).snapshots) == 700
    assert one > 800  # as long as those of writers


@pytest.mark.parametrize("moment", [-(2**62), 2**62, 2**63 - 1])
@pytest.mark.parametrize("key", ["last-updated-ms", "timestamp-ms"])
def test_a_time_that_is_none_is_told_as_that(key: str, moment: int) -> None:
    data = metadata_to_dict(metadata())
    if key == "timestamp-ms":
        snapshot = {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": moment, "manifest-list": "x", "summary": {}}
        data = {**data, "snapshots": [snapshot], "last-sequence-number": 1}
    else:
        data = {**data, key: moment}
    with pytest.raises(CorruptMetadataError, match=f"{key}.*no time"):
        metadata_from_json(json.dumps(data).encode())


def test_a_list_that_names_a_manifest_again_and_again_is_refused_at_once() -> None:
    places = ("s3://b/t/metadata/m1.avro", "s3a://b/t/./metadata//m1.avro")
    kinds = [f"{state}_{what}_count" for state in ("added", "existing", "deleted") for what in ("files", "rows")]
    counts: dict[str, Any] = dict.fromkeys(kinds, 1)
    shared: dict[str, Any] = {"manifest_length": 10, "partition_spec_id": 0, "added_snapshot_id": 1, **counts}
    listed = [ManifestFile(manifest_path=each, **shared) for each in places]
    data, _ = encode_manifest_list(listed, 2, 1, None, 1)
    assert len(decode_manifest_list(data)) == 2  # which a repair mends
    data, _ = encode_manifest_list(listed * 5_000, 2, 1, None, 1)
    started = time.process_time()
    with pytest.raises(CorruptManifestError, match="too often"):
        decode_manifest_list(data, "s3://b/list.avro")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy", "bzip2"])
def test_a_block_that_becomes_too_much_is_refused_whatever_its_number_of_records(codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}
    data = write_container(schema, json.dumps(schema).encode(), [{"a": bytes(4 * MEBIBYTE)}] * 8, codec, {})
    container = read_container(data, "manifest m")
    with pytest.raises(CorruptFileError, match="cannot be decompressed"):
        list(read_contents(container, "manifest m", expected=10**12, limit=ReadLimit(4 * MEBIBYTE)))


def test_a_manifest_list_that_tells_too_many_entries_does_not_lift_the_limit() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}
    data = write_container(schema, json.dumps(schema).encode(), [{"a": bytes(160 * MEBIBYTE)}], "zstd", {})
    container = read_container(data, "manifest m")
    assert len(data) < 100_000
    with pytest.raises(CorruptFileError, match="cannot be decompressed"):
        list(read_contents(container, "manifest m", expected=10**12))


@pytest.mark.parametrize("text", ["", "-1", "0", "1e9", "many", "1" * 5 + " "])
def test_a_limit_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=READ_LIMIT):
        ReadLimit.of({READ_LIMIT: text})
