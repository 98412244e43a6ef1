"""Tables made of manifests alone: commits of files in a line, and plans of them. No data file is ever opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.scan.manifests.cache import ManifestCache
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.spec.manifests.manifest_avro import encode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.metadata.metadata_snapshots import add_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from tests.support.memory_storage import InMemoryStorage

LOCATION = "mem://warehouse/db.db/t"
_numbers = count(1)


class ManifestTable:
    """A table whose snapshots are written manifest by manifest.

    Args:
        schema: the columns; their ids are kept.
        specs: partition specs; the last is the default one.
        format_version: 1, 2 or 3.
    """

    def __init__(self, schema: Schema, *specs: PartitionSpec, format_version: int = 2) -> None:
        self.storage = InMemoryStorage()
        self.storage.manifest_cache = ManifestCache()
        self.manifests: list[ManifestFile] = []
        specs = specs or (UNPARTITIONED,)
        self.metadata = TableMetadata(
            format_version=format_version,
            table_uuid="11111111-2222-3333-4444-555555555555",
            location=LOCATION,
            last_updated_ms=1_000,
            last_column_id=max(schema.index_by_id),
            schemas=(schema,),
            current_schema_id=schema.schema_id,
            partition_specs=specs,
            default_spec_id=specs[-1].spec_id,
            next_row_id=0 if format_version >= 3 else None,
        )

    def commit(self, *files: DataFile | ManifestEntry, apart: bool = False) -> Snapshot:
        """A snapshot that adds files (or has entries), in one manifest for each spec and content, or one for each."""
        snapshot_id = next(_numbers)
        entries = [
            each
            if isinstance(each, ManifestEntry)
            else ManifestEntry(ManifestEntryStatus.ADDED, None, None, None, each)
            for each in files
        ]
        groups: dict[Any, list[ManifestEntry]] = {}
        for number, entry in enumerate(entries):
            key = entry.data_file.spec_id, not entry.data_file.is_data, number if apart else 0
            groups.setdefault(key, []).append(entry)
        added = [self._manifest(group, snapshot_id) for group in groups.values()]
        return self.commit_manifests([*added, *self.manifests], snapshot_id)

    def commit_manifests(self, manifests: Sequence[ManifestFile], snapshot_id: int) -> Snapshot:
        """A snapshot of just these manifests."""
        metadata = self.metadata
        version = metadata.format_version
        sequence_number = metadata.last_sequence_number + 1 if version > 1 else 0
        location = f"{LOCATION}/metadata/snap-{snapshot_id}.avro"
        parent = metadata.current_snapshot_id
        data, next_row_id = encode_manifest_list(
            manifests, version, snapshot_id, parent, sequence_number, metadata.next_row_id
        )
        self.storage.create(location, data)
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent,
            sequence_number=sequence_number,
            timestamp_ms=metadata.last_updated_ms + 1,
            manifest_list=location,
            summary={"operation": "append"},
            schema_id=metadata.current_schema_id,
            first_row_id=metadata.next_row_id,
            added_rows=None if next_row_id is None else next_row_id - (metadata.next_row_id or 0),
        )
        self.metadata = add_snapshot(metadata, snapshot)
        self.manifests = self._listed(location)
        return snapshot

    def with_schema(self, schema: Schema) -> None:
        """Makes another schema the current one."""
        schemas = (*self.metadata.schemas, schema)
        self.metadata = replace(self.metadata, schemas=schemas, current_schema_id=schema.schema_id)

    def with_spec(self, spec: PartitionSpec) -> None:
        """Makes another partition spec the default one."""
        specs = (*self.metadata.partition_specs, spec)
        self.metadata = replace(self.metadata, partition_specs=specs, default_spec_id=spec.spec_id)

    def plan(self, row_filter: str | BooleanExpression | None = None, **more: Any) -> ScanPlan:
        """A plan of the current snapshot (or of ``snapshot_id``)."""
        expression = parse(row_filter) if isinstance(row_filter, str) else row_filter or AlwaysTrue()
        request = ScanRequest(self.metadata, row_filter=expression, **more)
        return plan_scan(request, self.storage)

    def planned(self, row_filter: str | BooleanExpression | None = None, **more: Any) -> list[str]:
        """The last part of the paths of the planned files, sorted."""
        return names(task.file for task in self.plan(row_filter, **more).tasks())

    def assigned(self, row_filter: str | BooleanExpression | None = None, **more: Any) -> dict[str, list[str]]:
        """For each planned file, the delete files that apply."""
        tasks = self.plan(row_filter, **more).tasks()
        return {names([task.file])[0]: names(task.delete_files) for task in tasks}

    def _manifest(self, entries: Iterable[ManifestEntry], snapshot_id: int) -> ManifestFile:
        entries = list(entries)
        first = entries[0].data_file
        content = ManifestContent.DATA if first.is_data else ManifestContent.DELETES
        path = f"{LOCATION}/metadata/{next(_numbers):05d}-m0.avro"
        spec = self.metadata.spec_by_id(first.spec_id)
        version = self.metadata.format_version
        data, manifest = encode_manifest(entries, self.metadata.schema(), spec, content, version, snapshot_id, path)
        self.storage.create(path, data)
        return manifest

    def _listed(self, location: str) -> list[ManifestFile]:
        return decode_manifest_list(self.storage.files[location], location)


def added(file: DataFile) -> ManifestEntry:
    """An entry that inherits everything."""
    return ManifestEntry(ManifestEntryStatus.ADDED, None, None, None, file)


def names(files: Iterable[DataFile]) -> list[str]:
    """The last part of each path, with the offset of a deletion vector, sorted."""
    found = []
    for file in files:
        name = file.file_path.rpartition("/")[2]
        found.append(name if file.content_offset is None else f"{name}@{file.content_offset}")
    return sorted(found)
