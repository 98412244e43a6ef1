from __future__ import annotations

import pytest

from hms_iceberg.errors import CorruptMetadataError, InvalidInputError
from hms_iceberg.spec.snapshots_and_refs import (
    BlobMetadata,
    EncryptionKey,
    Snapshot,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    encryption_key_from_json,
    encryption_key_to_json,
    metadata_log_from_json,
    new_snapshot_id,
    partition_statistics_from_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_from_json,
    snapshot_to_json,
    statistics_from_json,
    statistics_to_json,
)

FULL = Snapshot(
    5, 4, 3, 1515100955770, "s3://b/s.avro", None, {"operation": "append", "added-records": "1"}, 2, 100, 7, "key-1"
)


def test_a_snapshot_has_the_json_of_the_specification():
    assert snapshot_to_json(FULL) == {
        "sequence-number": 3,
        "snapshot-id": 5,
        "parent-snapshot-id": 4,
        "timestamp-ms": 1515100955770,
        "summary": {"operation": "append", "added-records": "1"},
        "manifest-list": "s3://b/s.avro",
        "schema-id": 2,
        "first-row-id": 100,
        "added-rows": 7,
        "key-id": "key-1",
    }
    assert snapshot_from_json(snapshot_to_json(FULL)) == FULL
    assert FULL.operation == "append"


def test_a_snapshot_of_version_1_may_list_its_manifests():
    data = {"snapshot-id": 1, "timestamp-ms": 5, "manifests": ["m1.avro", "m2.avro"]}
    snapshot = snapshot_from_json(data)
    assert snapshot.manifest_locations == ("m1.avro", "m2.avro")
    assert (snapshot.sequence_number, snapshot.summary, snapshot.operation) == (0, {}, None)
    assert snapshot_to_json(snapshot) == data


def test_a_summary_without_operation_counts_as_overwrite(caplog):
    data = {"snapshot-id": 1, "timestamp-ms": 5, "manifest-list": "m", "summary": {"a": "b"}}
    assert snapshot_from_json(data).summary == {"operation": "overwrite", "a": "b"}
    assert "lacks its operation" in caplog.text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "a snapshot is 5, expected an object"),
        ({}, "a snapshot lacks 'snapshot-id'"),
        ({"snapshot-id": "1"}, "'snapshot-id' of a snapshot is '1', expected an integer"),
        ({"snapshot-id": 2**63}, "64-bit"),
        ({"snapshot-id": 1, "manifest-list": "m"}, "snapshot 1 lacks 'timestamp-ms'"),
        ({"snapshot-id": 1, "timestamp-ms": 1}, "snapshot 1 has neither a 'manifest-list' nor"),
        ({"snapshot-id": 1, "timestamp-ms": 1, "manifests": [1]}, "neither"),
        ({"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "m", "summary": {"a": 1}}, "expected text"),
        ({"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "m", "summary": []}, "expected an object"),
    ],
)
def test_json_that_is_no_snapshot_is_refused_with_the_reason(data, message):
    with pytest.raises(CorruptMetadataError, match=message):
        snapshot_from_json(data)


def test_references_are_read_back_from_their_json():
    branch = SnapshotRef(1, SnapshotRefType.BRANCH, 2, 3, 4)
    assert ref_to_json(branch) == {
        "snapshot-id": 1,
        "type": "branch",
        "min-snapshots-to-keep": 2,
        "max-snapshot-age-ms": 3,
        "max-ref-age-ms": 4,
    }
    tag = SnapshotRef(1, SnapshotRefType.TAG, max_ref_age_ms=4)
    for ref in (branch, tag):
        assert ref_from_json(ref_to_json(ref), "r") == ref
    assert tag.is_tag
    assert branch.is_branch


def test_retention_that_makes_no_sense_is_refused():
    with pytest.raises(InvalidInputError, match="min_snapshots_to_keep must be above 0"):
        SnapshotRef(1, SnapshotRefType.BRANCH, 0)
    with pytest.raises(InvalidInputError, match="setting of branches"):
        SnapshotRef(1, SnapshotRefType.TAG, 5)
    with pytest.raises(CorruptMetadataError, match="expected branch or tag"):
        ref_from_json({"snapshot-id": 1, "type": "note"}, "r")


def test_statistics_are_read_back_from_their_json():
    blob = BlobMetadata("theta", 5, 3, (1, 2), {"ndv": "7"})
    file = StatisticsFile(5, "s.puffin", 100, 42, (blob, BlobMetadata("x", 5, 3)), "a2V5")
    assert statistics_from_json(statistics_to_json(file)) == file
    with pytest.raises(CorruptMetadataError, match="lacks 'blob-metadata'"):
        statistics_from_json({"snapshot-id": 1, "statistics-path": "p"})
    with pytest.raises(CorruptMetadataError, match="list of field ids"):
        statistics_from_json(
            {
                "snapshot-id": 1,
                "statistics-path": "p",
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [{"type": "t", "snapshot-id": 1, "sequence-number": 1, "fields": ["a"]}],
            }
        )
    with pytest.raises(CorruptMetadataError, match="lacks 'file-size-in-bytes'"):
        partition_statistics_from_json({"snapshot-id": 1, "statistics-path": "p"})


def test_encryption_keys_are_read_back_from_their_json():
    key = EncryptionKey("k", "bWV0YQ==", "parent", {"a": "b"})
    assert encryption_key_from_json(encryption_key_to_json(key)) == key
    assert encryption_key_from_json({"key-id": "k", "encrypted-key-metadata": "m"}) == EncryptionKey("k", "m")


def test_log_entries_need_their_members():
    with pytest.raises(CorruptMetadataError, match="an entry of the snapshot log lacks 'snapshot-id'"):
        snapshot_log_from_json({"timestamp-ms": 1})
    with pytest.raises(CorruptMetadataError, match="an entry of the metadata log lacks 'metadata-file'"):
        metadata_log_from_json({"timestamp-ms": 1})


def test_snapshot_ids_are_positive_and_free():
    ids = {new_snapshot_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(0 < each < 2**63 for each in ids)
    assert new_snapshot_id(ids) not in ids
