"""The check of a table's consistency: sound tables pass, and each kind of damage is found and named."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import IcebergError, NoSuchSnapshotError
from hms_iceberg.maintenance import ConsistencyReport, check_table
from hms_iceberg.maintenance.check.findings import (
    MisplacedFile,
    MissingFile,
    RepeatedFile,
    SecondDeletionVector,
    UnreadableFile,
    WrongFileSize,
    WrongManifestCount,
    WrongPartitionSummary,
    WrongRecordCount,
    WrongRowIds,
    WrongSequenceNumber,
    WrongStatistics,
    WrongSummary,
    WrongValues,
)
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, encode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, Snapshot
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import StaticTable, Table
from hms_iceberg.updates.machinery.manifest_files import entries_of
from tests.support.hdfs_path import local_path
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.spread import ALL
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64()), ("city", pa.string())])
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "city", StringType()))
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))


def make(folder: Path, version: int, **properties: str) -> Table:
    """A table of two appends and a deletion by row, partitioned by city."""
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(folder)})
    catalog.create_namespace("db", {"location": str(folder / "db")})
    table = catalog.create_table(
        "db.events",
        SCHEMA,
        partition_spec=BY_CITY,
        properties={**QUICK, "format-version": str(version), "write.delete.mode": "merge-on-read", **properties},
    )
    table.append(pa.table({"id": [1, 2, 3, 4], "city": ["Oslo", "Oslo", "Rome", None]}, schema=ARROW))
    table.append(pa.table({"id": [5, 6], "city": ["Oslo", "Bern"]}, schema=ARROW))
    if version > 1:
        table.delete("id = 1")
    return table


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return make(tmp_path, request.param)


@pytest.fixture
def lineage(tmp_path: Path) -> Table:
    return make(tmp_path, 3)


def head(table: Table) -> Snapshot:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot


def path(location: str) -> Path:
    return local_path(location)


def manifests(table: Table) -> list[ManifestFile]:
    location = head(table).manifest_list
    assert location is not None
    return decode_manifest_list(path(location).read_bytes(), location)


def data_manifest(table: Table) -> ManifestFile:
    """The newest manifest of data files with three of them or more."""
    return next(each for each in manifests(table) if each.added_files_count == 3)


def live(table: Table, content: DataFileContent = DataFileContent.DATA) -> list[DataFile]:
    read = table.storage.read
    found = (decode_manifest(read(each.manifest_path), each, checked=False) for each in manifests(table))
    files = [entry.data_file for entries in found for entry in entries]
    return [file for file in files if file.content is content]


def relist(table: Table, change: Callable[[list[ManifestFile]], list[ManifestFile]]) -> None:
    """Puts another manifest list where the current snapshot's is."""
    snapshot = head(table)
    assert snapshot.manifest_list is not None
    data, _ = encode_manifest_list(
        change(manifests(table)),
        format_version=table.metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        next_row_id=snapshot.first_row_id,
    )
    path(snapshot.manifest_list).write_bytes(data)


def replaced(table: Table, old: ManifestFile, **fields: Any) -> None:
    """Changes one row of the current snapshot's manifest list."""
    relist(table, lambda rows: [replace(row, **fields) if row == old else row for row in rows])


def rewritten(table: Table, old: ManifestFile, change: Callable[[list[ManifestEntry]], list[ManifestEntry]]) -> None:
    """Puts another manifest where one is, and says its length."""
    data, _ = encode_manifest(
        change(entries_of(old, table.storage)),
        schema=table.schema(),
        spec=table.spec(),
        content=old.content,
        format_version=table.metadata.format_version,
        snapshot_id=old.added_snapshot_id,
    )
    path(old.manifest_path).write_bytes(data)
    replaced(table, old, manifest_length=len(data))


def first(change: Callable[[ManifestEntry], ManifestEntry]) -> Callable[[list[ManifestEntry]], list[ManifestEntry]]:
    return lambda entries: [change(entries[0]), *entries[1:]]


def of_file(**fields: Any) -> Callable[[list[ManifestEntry]], list[ManifestEntry]]:
    return first(lambda entry: replace(entry, data_file=replace(entry.data_file, **fields)))


def with_metadata(table: Table, **fields: Any) -> StaticTable:
    """The table with other metadata than is stored."""
    version = MetadataVersion(table.metadata_location, replace(table.metadata, **fields))
    return StaticTable(("static",), version, table.storage)


def with_head(table: Table, **fields: Any) -> StaticTable:
    snapshots = (*table.metadata.snapshots[:-1], replace(table.metadata.snapshots[-1], **fields))
    return with_metadata(table, snapshots=snapshots)


def check(table: Table | StaticTable, **options: Any) -> ConsistencyReport:
    """Checks the newest snapshot."""
    snapshot_id = table.metadata.current_snapshot_id
    assert snapshot_id is not None
    return check_table(table, snapshot_ids=[snapshot_id], **options)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_nothing_is_found_in_a_sound_table(tmp_path: Path, version: int, file_format: str) -> None:
    table = make(tmp_path, version, **{"write.format.default": file_format})
    report = check_table(table, values=True)
    assert report.findings == ()
    assert report.ok
    assert (report.snapshots, report.manifests) == ((2, 2) if version == 1 else (3, 3))
    assert report.files == (5 if version == 1 else 6)
    assert str(report).startswith(table.metadata_location)


def test_an_empty_table_is_sound(tmp_path: Path) -> None:
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path)})
    assert check_table(catalog.create_table("db.empty", ARROW)).findings == ()


def test_a_snapshot_to_check_must_exist(table: Table) -> None:
    with pytest.raises(NoSuchSnapshotError, match="it has no snapshot 17"):
        check_table(table, snapshot_ids=[17])


# ---------------------------------------------------------------------------------------------------- files


def test_a_data_file_that_is_gone_is_found(table: Table) -> None:
    location = live(table)[0].file_path
    path(location).unlink()
    assert check_table(table, record_counts=True).findings == (MissingFile(location, "data file"),)
    assert check_table(table, files=False).ok


def test_a_delete_file_that_is_gone_is_found(table: Table) -> None:
    location = live(table, DataFileContent.POSITION_DELETES)[0].file_path
    path(location).unlink()
    assert check_table(table).findings == (MissingFile(location, "delete file"),)


def test_a_file_of_another_size_is_found(table: Table) -> None:
    file = live(table)[0]
    path(file.file_path).write_bytes(path(file.file_path).read_bytes() + b"x")
    size = file.file_size_in_bytes
    assert check_table(table).findings == (WrongFileSize(file.file_path, "data file", size, size + 1),)


def test_a_file_with_another_number_of_rows_is_found_on_request(table: Table) -> None:
    file = live(table)[0]
    content = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2, 3, 4, 5, 6, 7]}), content)
    path(file.file_path).write_bytes(content.getvalue())
    found = check_table(table, record_counts=True).findings
    assert WrongRecordCount(file.file_path, file.record_count, 7) in found
    assert {type(each) for each in found} <= {WrongRecordCount, WrongFileSize}
    assert {type(each) for each in check_table(table).findings} <= {WrongFileSize}


def test_a_file_that_is_no_data_file_is_found_on_request(table: Table) -> None:
    file = live(table)[0]
    path(file.file_path).write_bytes(b"\0" * file.file_size_in_bytes)
    (finding,) = check_table(table, record_counts=True).findings
    assert isinstance(finding, UnreadableFile)
    assert finding.location == file.file_path
    assert check_table(table).ok


# ORC and Avro have no checksums: of what can still be decoded, only bounds and counts tell.
@pytest.mark.parametrize(("file_format", "most_missed"), [("parquet", 0), ("orc", 1 / 30), ("avro", 1 / 6)])
def test_bits_that_flipped_in_the_pages_of_a_file_are_found_on_request(
    tmp_path: Path, file_format: str, most_missed: float
) -> None:
    table = make(tmp_path, 2, **{"write.format.default": file_format})
    many = pa.table({"id": list(range(500)), "city": [f"city {number % 7}" for number in range(500)]}, schema=ARROW)
    table.overwrite(many)
    rows = table.scan().to_arrow().sort_by("id")
    path = local_path(next(iter(table.scan().plan_files())).file.file_path)
    whole = path.read_bytes()
    missed = 0
    positions = range(4, len(whole), max(1, len(whole) // (150 if ALL else 50)))
    for position in positions:
        data = bytearray(whole)
        data[position] ^= 4
        path.write_bytes(bytes(data))
        findings = check_table(table, values=True).findings
        try:
            changed = not table.scan().to_arrow().sort_by("id").equals(rows)
        except IcebergError:
            changed = True
        missed += changed and not findings
    assert missed <= most_missed * len(positions)


def test_values_that_a_writer_without_checksums_did_not_write_are_found_on_request(table: Table) -> None:
    file = next(iter(table.scan("id = 1").plan_files())).file
    path = local_path(file.file_path)
    rows = pq.ParquetFile(io.BytesIO(path.read_bytes())).read()
    for wrong, told in ((pa.array([77] * len(rows)), "above the greatest"), (pa.nulls(len(rows), pa.int64()), "nulls")):
        schema = rows.schema
        changed = io.BytesIO()
        pq.write_table(rows.set_column(0, schema.field(0), wrong).cast(schema), changed)
        path.write_bytes(changed.getvalue())
        found = {type(each): each for each in check_table(table, values=True).findings}
        assert told in str(found[WrongValues]) and "of id" in str(found[WrongValues])
        assert WrongValues not in {type(each) for each in check_table(table, record_counts=True).findings}


def test_a_damaged_deletion_vector_is_found_on_request(lineage: Table) -> None:
    (vector,) = live(lineage, DataFileContent.POSITION_DELETES)
    data = bytearray(path(vector.file_path).read_bytes())
    assert vector.content_offset is not None and vector.content_size_in_bytes is not None
    data[vector.content_offset + vector.content_size_in_bytes - 1] ^= 1
    path(vector.file_path).write_bytes(data)
    (finding,) = check_table(lineage, record_counts=True).findings
    assert isinstance(finding, UnreadableFile)
    assert "checksum" in str(finding)


def test_statistics_that_are_gone_are_found(table: Table, tmp_path: Path) -> None:
    location = str(tmp_path / "absent.parquet")
    statistics = PartitionStatisticsFile(head(table).snapshot_id, location, 10)
    report = check_table(with_metadata(table, partition_statistics=(statistics,)))
    assert report.findings == (MissingFile(location, "statistics file"),)


# --------------------------------------------------------------------------------- manifest lists, manifests


def test_statistics_of_the_same_size_that_are_damaged_or_of_another_snapshot_are_found(table: Table) -> None:
    whole = table.maintenance.compute_table_stats()
    parts = table.maintenance.compute_partition_stats()
    assert whole is not None and parts is not None and check(table.refresh()).ok

    def is_found(location: str, data: bytes) -> None:
        kept = path(location).read_bytes()
        assert len(data) == len(kept) != 0 and data != kept
        path(location).write_bytes(data)
        (finding,) = check(table.refresh()).findings
        path(location).write_bytes(kept)
        assert isinstance(finding, WrongStatistics) and location in str(finding)

    sketches = path(whole.statistics_path).read_bytes()
    for changed in (
        sketches.replace(b'"snapshot-id":', b'"snap-hot-id":'),
        sketches.replace(str(whole.snapshot_id).encode(), b"1" * len(str(whole.snapshot_id))),
        sketches[:4] + bytes(8) + sketches[12:],  # the first bytes of a compressed sketch
        sketches[:-1] + b"x",
    ):
        is_found(whole.statistics_path, changed)
    rows = path(parts.statistics_path).read_bytes()
    for changed in (rows[:-1] + b"x", rows[:4] + bytes(40) + rows[44:]):
        is_found(parts.statistics_path, changed)
    other = replace(table.refresh().metadata.partition_statistics[0], snapshot_id=table.snapshots()[0].snapshot_id)
    (finding,) = check_table(with_metadata(table, partition_statistics=(other,))).findings
    assert "says total-records" in str(finding)


def test_a_manifest_list_that_is_gone_is_found(table: Table) -> None:
    location = head(table).manifest_list
    assert location is not None
    path(location).unlink()
    assert check_table(table).findings == (MissingFile(location, "manifest list"),)


def test_a_manifest_that_is_gone_is_found_once(table: Table) -> None:
    location = data_manifest(table).manifest_path
    path(location).unlink()
    assert check_table(table).findings == (MissingFile(location, "manifest"),)


@pytest.mark.parametrize("what", ["manifest list", "manifest"])
def test_metadata_files_that_are_damaged_are_found(table: Table, what: str) -> None:
    location = data_manifest(table).manifest_path if what == "manifest" else head(table).manifest_list
    assert location is not None
    path(location).write_bytes(b"\0" * path(location).stat().st_size)
    (finding,) = check_table(table).findings
    assert isinstance(finding, UnreadableFile)
    assert (finding.location, finding.role) == (location, what)


def test_a_manifest_of_another_length_is_found(table: Table) -> None:
    manifest = data_manifest(table)
    length = manifest.manifest_length
    replaced(table, manifest, manifest_length=length + 1)
    assert check(table).findings == (WrongFileSize(manifest.manifest_path, "manifest", length + 1, length),)


@pytest.mark.parametrize("field", ["added_files_count", "existing_rows_count", "deleted_files_count"])
def test_a_count_of_a_manifest_list_that_is_wrong_is_found(table: Table, field: str) -> None:
    manifest = data_manifest(table)
    right = getattr(manifest, field)
    replaced(table, manifest, **{field: right + 2})
    assert check(table).findings == (WrongManifestCount(manifest.manifest_path, field, right + 2, right),)


def test_a_partition_summary_without_a_live_files_value_is_found(table: Table) -> None:
    manifest = data_manifest(table)
    assert manifest.partitions is not None
    (summary,) = manifest.partitions
    replaced(table, manifest, partitions=(replace(summary, upper_bound=b"Paris"),))
    (finding,) = check(table).findings
    assert isinstance(finding, WrongPartitionSummary)
    assert "city=Rome" in finding.location
    replaced(
        table,
        next(each for each in manifests(table) if each.manifest_path == manifest.manifest_path),
        partitions=(replace(summary, contains_null=False),),
    )
    (finding,) = check(table).findings
    assert isinstance(finding, WrongPartitionSummary)
    assert "null" in finding.reason


def test_delete_files_among_data_files_are_found(table: Table) -> None:
    manifest = next(each for each in manifests(table) if each.content is ManifestContent.DELETES)
    replaced(table, manifest, content=ManifestContent.DATA)
    found = [each for each in check(table).findings if isinstance(each, MisplacedFile)]
    assert [each.location for each in found] == [live(table, DataFileContent.POSITION_DELETES)[0].file_path]


# ------------------------------------------------------------------------------------------------ snapshots


@pytest.mark.parametrize(
    ("key", "right"),
    [("total-records", 6), ("total-data-files", 5), ("total-delete-files", 1), ("total-position-deletes", 1)],
)
@pytest.mark.parametrize("wrong", ["7", "many"])
def test_a_total_that_is_wrong_is_found(table: Table, key: str, right: int, wrong: str) -> None:
    snapshot = head(table)
    broken = with_head(table, summary={**snapshot.summary, key: wrong})
    assert check_table(broken).findings == (WrongSummary(snapshot.snapshot_id, key, wrong, right),)


def test_a_change_that_the_summary_does_not_say_is_found(table: Table) -> None:
    snapshot = head(table)
    summary = {key: value for key, value in snapshot.summary.items() if key != "added-delete-files"}
    (finding,) = check_table(with_head(table, summary=summary)).findings
    assert finding == WrongSummary(snapshot.snapshot_id, "added-delete-files", None, 1)
    assert "does not say" in str(finding)


def test_a_file_that_is_live_twice_is_found(table: Table) -> None:
    manifest = data_manifest(table)
    relist(table, lambda rows: [*rows, manifest])
    found = check(table).findings
    repeated = {each.location for each in found if isinstance(each, RepeatedFile) and each.times == 2}
    assert repeated == {entry.data_file.file_path for entry in entries_of(manifest, table.storage)}
    assert any(isinstance(each, WrongSummary) and each.key == "total-records" for each in found)


def test_two_deletion_vectors_of_one_data_file_are_found(lineage: Table) -> None:
    manifest = next(each for each in manifests(lineage) if each.content is ManifestContent.DELETES)

    def doubled(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return [*entries, replace(entries[0], data_file=replace(entries[0].data_file, file_path="/other.puffin"))]

    rewritten(lineage, manifest, doubled)
    found = check(lineage, files=False).findings
    data_file = live(lineage, DataFileContent.POSITION_DELETES)[0].referenced_data_file
    assert data_file is not None
    assert SecondDeletionVector(head(lineage).snapshot_id, data_file, 2) in found


# ---------------------------------------------------------------------------------- sequence numbers, row ids


def test_a_snapshot_beyond_the_tables_last_sequence_number_is_found(table: Table) -> None:
    (finding,) = check_table(with_metadata(table, last_sequence_number=2)).findings
    assert finding == WrongSequenceNumber(f"snapshot {head(table).snapshot_id}", "it is 3, the table's last one is 2")


def test_a_snapshot_that_is_not_after_its_parent_is_found(table: Table) -> None:
    found = check_table(with_head(table, sequence_number=2)).findings
    assert all(isinstance(each, WrongSequenceNumber) for each in found)
    assert {each.where.split()[0] for each in found if isinstance(each, WrongSequenceNumber)} == {"snapshot", "the"}


def test_a_minimum_above_a_live_files_sequence_number_is_found(table: Table) -> None:
    manifest = data_manifest(table)
    replaced(table, manifest, min_sequence_number=2)
    (finding,) = check(table).findings
    assert isinstance(finding, WrongSequenceNumber)
    assert manifest.manifest_path in finding.where


def test_a_file_newer_than_its_manifest_is_found(table: Table) -> None:
    rewritten(table, data_manifest(table), first(lambda entry: replace(entry, file_sequence_number=9)))
    (finding,) = check(table).findings
    assert isinstance(finding, WrongSequenceNumber)
    assert "it is 9" in finding.reason


def test_data_newer_than_its_file_is_found(table: Table) -> None:
    rewritten(
        table, data_manifest(table), first(lambda entry: replace(entry, sequence_number=9, file_sequence_number=1))
    )
    (finding,) = check(table).findings
    assert isinstance(finding, WrongSequenceNumber)
    assert "data sequence number is 9" in finding.reason


def test_row_ids_that_are_given_twice_are_found(lineage: Table) -> None:
    newer = next(each for each in manifests(lineage) if each.added_files_count == 2)
    replaced(lineage, newer, first_row_id=0)
    found = check(lineage).findings
    assert found
    assert all(isinstance(each, WrongRowIds) and "within those of" in each.reason for each in found)


def test_row_ids_beyond_those_that_were_assigned_are_found(lineage: Table) -> None:
    rewritten(lineage, data_manifest(lineage), of_file(first_row_id=1_000))
    (finding,) = check(lineage).findings
    assert isinstance(finding, WrongRowIds)
    assert "1000" in finding.reason
    broken: TableMetadata = replace(lineage.metadata, next_row_id=1)
    found = check_table(with_metadata(lineage, next_row_id=broken.next_row_id)).findings
    assert any(isinstance(each, WrongRowIds) and "the table's next one is 1" in each.reason for each in found)
