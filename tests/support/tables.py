"""Tables in memory in a line: metadata, data files, committed histories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hms_iceberg.maintenance import check_table
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.spec.data_types import IntegerType, LongType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry
from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.table.readable import StaticTable
from hms_iceberg.transaction.transaction import Created, Existing, Transaction
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "amount", IntegerType()),
)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
LOCATION = "mem://warehouse/db.db/events"
QUICK = {
    "commit.retry.min-wait-ms": "0",
    "commit.status-check.min-wait-ms": "0",
    "commit.status-check.num-retries": "1",
}
NAME: Identifier = ("db", "events")
_numbers = count()


def metadata(
    schema: Schema = SCHEMA,
    spec: PartitionSpec = UNPARTITIONED,
    properties: Mapping[str, str] | None = None,
    format_version: int = 2,
) -> TableMetadata:
    """Metadata of an empty table."""
    return new_table_metadata(
        schema, spec, location=LOCATION, properties={**QUICK, **(properties or {})}, format_version=format_version
    )


def data_file(
    low: int = 0, high: int = 9, city: str | None = None, records: int | None = None, **more: Any
) -> DataFile:
    """A data file whose ids go from `low` to `high`, in partition `city` of spec 0 where that is given."""
    rows = high - low + 1 if records is None else records
    bounds = {
        "value_counts": {1: rows},
        "null_value_counts": {1: 0},
        "lower_bounds": {1: to_bytes(LongType(), low)},
        "upper_bounds": {1: to_bytes(LongType(), high)},
    }
    return DataFile(
        **{
            "file_path": f"{LOCATION}/data/{next(_numbers):05d}.parquet",
            "file_format": "PARQUET",
            "record_count": rows,
            "file_size_in_bytes": 100 * rows,
            "partition": () if city is None else (city,),
            **bounds,
            **more,
        }
    )


def position_deletes(target: DataFile, rows: int = 1, **more: Any) -> DataFile:
    """A position delete file for one data file."""
    return _delete_file(target, DataFileContent.POSITION_DELETES, rows, referenced_data_file=target.file_path, **more)


def equality_deletes(target: DataFile, rows: int = 1, **more: Any) -> DataFile:
    """An equality delete file, on `id`, in the partition of a data file."""
    return _delete_file(target, DataFileContent.EQUALITY_DELETES, rows, equality_ids=(1,), **more)


def deletion_vector(target: DataFile, rows: int = 1, offset: int = 4, **more: Any) -> DataFile:
    """A deletion vector for one data file, in a Puffin file of its own."""
    return _delete_file(
        target,
        DataFileContent.POSITION_DELETES,
        rows,
        **{
            "file_path": f"{LOCATION}/data/{next(_numbers):05d}.puffin",
            "file_format": "PUFFIN",
            "referenced_data_file": target.file_path,
            "content_offset": offset,
            "content_size_in_bytes": 40,
            **more,
        },
    )


def _delete_file(target: DataFile, content: DataFileContent, rows: int, **more: Any) -> DataFile:
    return DataFile(
        **{
            "file_path": f"{LOCATION}/data/{next(_numbers):05d}-deletes.parquet",
            "file_format": "PARQUET",
            "content": content,
            "record_count": rows,
            "file_size_in_bytes": 50 * rows,
            "spec_id": target.spec_id,
            "partition": target.partition,
            **more,
        }
    )


@dataclass
class World:
    """A metastore and a storage with one table `db.events`."""

    metastore: InMemoryMetastore = field(default_factory=InMemoryMetastore)
    storage: InMemoryStorage = field(default_factory=InMemoryStorage)

    @classmethod
    def with_table(cls, initial: TableMetadata | None = None) -> World:
        """A world whose table is empty."""
        world = cls()
        world.metastore.create_namespace("db", {})
        Transaction(NAME, Created(initial or metadata()), world.metastore, world.storage).commit()
        return world

    def version(self) -> MetadataVersion:
        """The table's current version."""
        return read_version(self.metastore.load(NAME).metadata_location, self.storage)

    def begin(self, *updates: Update) -> Transaction:
        """A transaction on the current version, with updates."""
        transaction = Transaction(NAME, Existing(self.version()), self.metastore, self.storage)
        for update in updates:
            transaction.add(update)
        return transaction

    def commit(self, *updates: Update) -> TableMetadata:
        """Commits updates, and returns the metadata after that."""
        return self.begin(*updates).commit().metadata

    def append(self, *files: DataFile, **more: Any) -> TableMetadata:
        """Commits an append."""
        return self.commit(FastAppend(tuple(files), **more))

    def live(self, branch: str = "main") -> list[ManifestEntry]:
        """Live entries of a branch's head."""
        snapshot = self.version().metadata.snapshot_by_name(branch)
        manifests = manifest_list_of(snapshot, self.storage)
        return [entry for manifest in manifests for entry in entries_of(manifest, self.storage) if entry.is_live]

    def live_paths(self, branch: str = "main") -> list[str]:
        """Locations of the live files of a branch's head, sorted."""
        return sorted(entry.data_file.file_path for entry in self.live(branch))

    def check(self) -> None:
        """Checks that every snapshot's summary and manifest list say what the manifests hold."""
        metadata = self.version().metadata
        for snapshot in metadata.snapshots:
            check_snapshot(metadata, snapshot, self.storage)


def check_snapshot(metadata: TableMetadata, snapshot: Snapshot, storage: InMemoryStorage) -> None:
    """Checks that a snapshot has all totals, and that its summary and manifest lists say what its manifests hold."""
    table = StaticTable(NAME, MetadataVersion(metadata.location, metadata), storage)
    report = check_table(table, files=False, snapshot_ids=[snapshot.snapshot_id])
    assert report.ok, str(report)
    totals = ("data-files", "records", "delete-files", "position-deletes", "equality-deletes", "files-size")
    assert {f"total-{each}" for each in totals} <= snapshot.summary.keys()
