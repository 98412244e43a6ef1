from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_iceberg.errors import CorruptMetadataError, IcebergError, InvalidInputError, UnsupportedError
from hms_iceberg.spec.metadata.metadata_json import (
    compress,
    metadata_from_dict,
    metadata_from_json,
    metadata_to_dict,
    metadata_to_json,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField
from hms_iceberg.spec.snapshots_and_refs import SnapshotRef
from hms_iceberg.spec.sort_orders import UNSORTED
from tests.support.spec_strategies import table_metadata

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]}
SNAPSHOT = {
    "snapshot-id": 7,
    "sequence-number": 1,
    "timestamp-ms": 1000,
    "summary": {"operation": "append"},
    "manifest-list": "s3://b/snap.avro",
}
V2 = {
    "format-version": 2,
    "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
    "location": "s3://b/wh/data.db/table",
    "last-sequence-number": 1,
    "last-updated-ms": 1000,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [SCHEMA],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "current-snapshot-id": 7,
    "snapshots": [SNAPSHOT],
}
V1_OLD = {
    "format-version": 1,
    "location": "s3://b/t/",
    "last-updated-ms": 1000,
    "last-column-id": 1,
    "schema": {"type": "struct", "fields": SCHEMA["fields"]},
    "partition-spec": [{"name": "a", "transform": "identity", "source-id": 1}],
}


def read(data, **changes):
    return metadata_from_json(json.dumps({**data, **changes}).encode(), "s3://b/v1.metadata.json")


def without(data, *keys):
    return {key: value for key, value in data.items() if key not in keys}


# ------------------------------------------------------------------------------------------ round trips


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(table_metadata(), st.booleans())
def test_metadata_of_every_version_is_read_back_from_its_json(metadata, compressed):
    data = metadata_to_json(metadata)
    assert metadata_from_json(compress(data) if compressed else data) == metadata


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(table_metadata())
def test_members_that_nobody_knows_are_dropped(metadata):
    data = metadata_to_dict(metadata)
    data["x-new"] = {"a": 1}
    assert metadata_from_dict(data) == metadata


def test_compression_is_told_by_the_content_whatever_the_name():
    data = json.dumps(V2).encode()
    assert metadata_from_json(gzip.compress(data), "plain.metadata.json") == metadata_from_json(data)
    assert metadata_from_json(gzip.compress(data[:50]) + gzip.compress(data[50:])) == metadata_from_json(data)


# -------------------------------------------------------------------------------------- format versions


def test_version_1_is_written_for_older_readers_too():
    data = metadata_to_dict(read(V1_OLD))
    assert data["schema"] == data["schemas"][0]
    assert data["partition-spec"] == data["partition-specs"][0]["fields"]
    assert data["current-snapshot-id"] == -1
    assert "last-sequence-number" not in data
    assert "next-row-id" not in data


def test_version_2_needs_no_legacy_members():
    data = metadata_to_dict(read(without(V2, "snapshots"), **{"current-snapshot-id": -1}))
    assert "schema" not in data
    assert "partition-spec" not in data
    assert data["current-snapshot-id"] == -1
    assert data["last-sequence-number"] == 1


def test_version_3_has_a_next_row_id_and_null_for_no_snapshot():
    data = metadata_to_dict(
        read(without(V2, "snapshots", "current-snapshot-id"), **{"format-version": 3, "next-row-id": 9})
    )
    assert data["next-row-id"] == 9
    assert data["current-snapshot-id"] is None


def test_the_oldest_metadata_of_version_1_is_completed():
    metadata = read(V1_OLD)
    assert metadata.table_uuid is None
    assert metadata.location == "s3://b/t"
    assert metadata.schema().schema_id == 0
    assert metadata.spec().fields == (PartitionField(1, 1000, "identity", "a"),)
    assert metadata.last_partition_id == 1000
    assert metadata.sort_orders == (UNSORTED,)
    assert metadata.current_snapshot_id is None
    assert (metadata.snapshots, metadata.refs, metadata.properties) == ((), {}, {})


def test_a_table_without_refs_has_a_main_branch():
    assert read(V2).refs == {"main": SnapshotRef(7)}
    tagged = read(V2, refs={"old": {"snapshot-id": 7, "type": "tag"}})
    assert sorted(tagged.refs) == ["main", "old"]


def test_ids_that_are_too_low_are_raised_to_those_in_use():
    assert read(V2, **{"last-column-id": 0}).last_column_id == 1
    spec = {"spec-id": 0, "fields": [{"name": "a", "transform": "identity", "source-id": 1, "field-id": 1004}]}
    assert read(V2, **{"partition-specs": [spec]}).last_partition_id == 1004


def test_the_unsorted_order_need_not_be_listed():
    assert read(V2, **{"sort-orders": []}).sort_order() == UNSORTED


@pytest.mark.parametrize("version", [0, 4, 99])
def test_other_format_versions_are_refused(version):
    with pytest.raises(UnsupportedError, match=rf"s3://b/v1.metadata.json: the table has format version {version};"):
        read(V2, **{"format-version": version})


# ---------------------------------------------------------------------------------------------- refusal


REQUIRED = {
    1: ["format-version", "location", "last-updated-ms", "last-column-id", "schema", "partition-spec"],
    2: [
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "current-schema-id",
        "schemas",
        "default-spec-id",
        "partition-specs",
        "last-partition-id",
        "default-sort-order-id",
        "sort-orders",
    ],
}


@pytest.mark.parametrize(("data", "key"), [(data, key) for v, data in ((1, V1_OLD), (2, V2)) for key in REQUIRED[v]])
def test_metadata_without_a_required_member_is_refused(data, key):
    with pytest.raises(CorruptMetadataError, match=f"s3://b/v1.metadata.json: .*{key}"):
        read(without(data, key))


def test_version_3_needs_a_next_row_id():
    with pytest.raises(CorruptMetadataError, match="next-row-id"):
        read(V2, **{"format-version": 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"current-schema-id": 5}, r"'current-schema-id' is 5, but the table only has \[0\]"),
        ({"default-spec-id": 5}, "'default-spec-id' is 5"),
        ({"default-sort-order-id": 5}, "'default-sort-order-id' is 5"),
        ({"current-snapshot-id": 5}, "table has no such snapshot"),
        ({"schemas": [SCHEMA, SCHEMA]}, "schema 0 is there more than once"),
        ({"schemas": []}, "'schemas' is empty"),
        ({"snapshots": [SNAPSHOT, SNAPSHOT]}, "snapshot 7 is there more than once"),
        ({"partition-specs": []}, "'default-spec-id' is 0"),
        ({"partition-specs": [{"spec-id": 0, "fields": []}] * 2}, "partition spec 0 is there more than once"),
        ({"snapshots": [{**SNAPSHOT, "sequence-number": 2}]}, "sequence number 2, higher than the table's last, 1"),
        ({"refs": {"dev": {"snapshot-id": 9, "type": "branch"}}}, "reference 'dev' points at snapshot 9"),
        ({"refs": {"main": {"snapshot-id": 7, "type": "tag"}}}, "'main' is a tag"),
        ({"refs": {"main": {"snapshot-id": 7, "type": "x"}}}, "expected branch or tag"),
        ({"refs": [1]}, "'refs' is"),
        ({"refs": {"main": {"snapshot-id": 7, "type": "branch"}}, "current-snapshot-id": -1}, "branch main points at"),
        ({"location": ""}, "no location"),
        ({"location": 5}, "'location' of the metadata is 5, expected text"),
        ({"properties": {"a": 1}}, "'a' in 'properties'"),
        ({"table-uuid": ""}, "needs a 'table-uuid'"),
        ({"last-updated-ms": 1000.5}, "expected an integer"),
        (
            {"snapshot-log": [{"snapshot-id": 7, "timestamp-ms": 100_000}, {"snapshot-id": 7, "timestamp-ms": 1000}]},
            "'snapshot-log' has an entry of 100000 ms before one of 1000 ms",
        ),
        ({"metadata-log": [{"metadata-file": "x", "timestamp-ms": 100_000}]}, "'metadata-log' has an entry"),
        ({"schemas": [{**SCHEMA, "fields": SCHEMA["fields"] * 2}]}, "the name .a. stands for both field 1 and field 1"),
    ],
)
def test_metadata_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(CorruptMetadataError, match=message):
        read(V2, **changes)


FIELD = {"name": "p", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}
KEY = {"key-id": "k", "encrypted-key-metadata": "YQ=="}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition-specs": [{"spec-id": 0, "fields": [FIELD, {**FIELD, "name": "q"}]}]}, "field 1000 is there more"),
        (
            {"partition-specs": [{"spec-id": 0, "fields": [FIELD, {**FIELD, "field-id": 1001}]}]},
            "field p is there more",
        ),
        ({"encryption-keys": [KEY, KEY]}, "encryption key k is there more than once"),
        ({"snapshots": [{**SNAPSHOT, "first-row-id": -1, "added-rows": 3}]}, "'first-row-id' -1"),
        ({"snapshots": [{**SNAPSHOT, "first-row-id": 0}]}, "'added-rows' None"),
        ({"snapshots": [{**SNAPSHOT, "added-rows": -3}]}, "'added-rows' -3"),
    ],
)
def test_ids_that_collide_and_impossible_row_ids_are_refused(changes, message):
    with pytest.raises(CorruptMetadataError, match=message):
        read(V2, **{"format-version": 3, "next-row-id": 0, **changes})


def test_clocks_may_differ_a_little():
    log = [{"snapshot-id": 7, "timestamp-ms": 50_000}, {"snapshot-id": 7, "timestamp-ms": 1000}]
    assert len(read(V2, **{"snapshot-log": log}).snapshot_log) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"PAR1",
        b"\x1f\x8b",
        b"\x1f\x8b\x08garbage",
        gzip.compress(json.dumps(V2).encode())[:-20],
        gzip.compress(b"not json", mtime=0),
        b"[" * 200_000,
        b'{"format-version": 2, "schemas": ' + b'[{"type":' * 100_000,
    ],
)
def test_content_that_is_no_metadata_is_refused_with_the_name_of_the_file(data):
    with pytest.raises(CorruptMetadataError, match=r"Cannot read table metadata s3://b/x\.json"):
        metadata_from_json(data, "s3://b/x.json")


def test_deeply_nested_types_are_refused_and_do_not_overflow_the_stack():
    text = json.dumps(V2).replace('"long"', '"@"')
    nested = "".join(
        f'{{"type":"list","element-id":{each},"element-required":false,"element":' for each in range(2, 50_000)
    )
    with pytest.raises(CorruptMetadataError):
        metadata_from_json(text.replace('"@"', nested + '"long"' + "}" * 49_998).encode())


def test_half_characters_are_not_written():
    metadata = replace(read(V2), properties={"a": "\ud800"})
    with pytest.raises(InvalidInputError, match="half a character"):
        metadata_to_json(metadata)


def test_invalid_metadata_is_not_written():
    with pytest.raises(CorruptMetadataError):
        metadata_to_json(replace(read(V2), current_schema_id=9))


# ----------------------------------------------------------------------------------------------- hostile

# How many mutations each of the tests below tries; set HMS_ICEBERG_FUZZ to try more.
MUTATIONS = int(os.environ.get("HMS_ICEBERG_FUZZ", "3000"))


def _mutated(rng: random.Random, value: object) -> object:
    """The value with something at a random place removed, replaced or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {each: kept for each, kept in value.items() if each != key}
        return {**value, key: _mutated(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [
            *value[:place],
            *([] if rng.random() < 0.2 else [_mutated(rng, value[place])] * rng.choice((1, 2))),
            *value[place + 1 :],
        ]
    return rng.choice(
        [None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, "", "x", "decimal(99,1)", [], {}, [[]], {"": None}]
    )


def test_mutated_metadata_gives_metadata_or_a_typed_error():
    rng = random.Random(20_261_121)
    full = metadata_to_dict(read(V2, refs={"old": {"snapshot-id": 7, "type": "tag"}}, properties={"a": "b"}))
    full["partition-specs"] = [
        {"spec-id": 0, "fields": [{"name": "p", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}]}
    ]
    full["statistics"] = [
        {
            "snapshot-id": 7,
            "statistics-path": "p",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [{"type": "t", "snapshot-id": 7, "sequence-number": 1, "fields": [1]}],
        }
    ]
    for _ in range(MUTATIONS):
        data = full
        for _ in range(rng.choice((1, 1, 2))):
            data = _mutated(rng, data)
        with contextlib.suppress(IcebergError):
            metadata_to_json(metadata_from_json(json.dumps(data).encode()))


def test_mutated_bytes_give_metadata_or_a_typed_error():
    rng = random.Random(7)
    plain = json.dumps(V2).encode()
    for source in (plain, gzip.compress(plain)):
        for _ in range(MUTATIONS // 2):
            data = bytearray(source)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with contextlib.suppress(IcebergError):
                metadata_from_json(bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data))))]))
