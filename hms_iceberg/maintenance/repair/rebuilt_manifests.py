"""Manifests, made anew from later manifests that carry the same files, and from the footers of files.

What comes out is taken for what was lost only where it has as many files and rows as manifest lists say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hms_iceberg.arrow.metrics.metrics_modes import metrics_modes
from hms_iceberg.arrow.reading.imported_files import FileImport
from hms_iceberg.arrow.storage.data_locations import LocationRules
from hms_iceberg.errors import IcebergError, StorageError
from hms_iceberg.maintenance.repair.delete_files import DeleteFileImport
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination
from hms_iceberg.maintenance.side_by_side import in_parallel
from hms_iceberg.spec.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.manifests.manifest_avro import encode_manifest
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.name_mapping import create_name_mapping
from hms_iceberg.spec.table_properties import metadata_folder

_ENDINGS = (".parquet", ".orc", ".avro", ".puffin")


@dataclass(frozen=True)
class Rebuilt:
    """A manifest made anew.

    Attributes:
        entries: what it holds.
        source: from what it was made, in words.
        loses: what of the old one is lost.
    """

    entries: tuple[ManifestEntry, ...]
    source: str
    loses: str | None = None


def rebuild_manifest(examination: Examination, manifest: ManifestFile) -> Rebuilt | None:
    """The entries of a damaged manifest; None if they cannot be told for certain."""
    if manifest.added_files_count is None or manifest.existing_files_count is None:
        return None
    others = _beside(examination, manifest)
    carried = _carried(examination, manifest, others)
    if carried is not None:
        return _without_removals(manifest, carried, "from later manifests that name the same files")
    if not _has_exact_numbers(manifest) and _depends_on_numbers(examination, manifest):
        return None
    found = _from_footers(examination, manifest)
    if found is None:
        return None
    return _without_removals(manifest, found, "from the footers of the files that no other manifest names")


def _has_exact_numbers(manifest: ManifestFile) -> bool:
    """Whether the list says the data sequence number of every file: they are all new, or there is only one."""
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return files == 1 or (
        not manifest.existing_files_count and manifest.min_sequence_number == manifest.sequence_number
    )


def _depends_on_numbers(examination: Examination, manifest: ManifestFile) -> bool:
    """Whether sequence numbers, which files do not have, decide which rows are deleted."""
    if manifest.content is ManifestContent.DELETES:
        return True
    damaged = (examination.rows[location] for location in examination.damaged_manifests)
    unknown = any(each.content is ManifestContent.DELETES for each in damaged)
    return unknown or any(
        entry.is_live and entry.data_file.content is DataFileContent.EQUALITY_DELETES
        for entries in examination.entries.values()
        for entry in entries
    )


def _beside(examination: Examination, manifest: ManifestFile) -> set[str]:
    """Files of the manifests that stand in one list with this one: they are not in it as well."""
    beside = {
        other.manifest_path
        for listed in examination.lists.values()
        if any(each.manifest_path == manifest.manifest_path for each in listed)
        for other in listed
    }
    return {
        entry.data_file.file_path
        for location in beside
        for entry in examination.entries.get(location, ())
        if entry.is_live
    }


def _carried(examination: Examination, manifest: ManifestFile, others: set[str]) -> list[ManifestEntry] | None:
    """The entries of a manifest of which all files were added by its snapshot, from manifests that carry them on."""
    if manifest.existing_files_count:
        return None
    found: dict[tuple[str, int | None], ManifestEntry] = {}
    for entries in examination.entries.values():
        for entry in entries:
            file = entry.data_file
            if (
                entry.status is ManifestEntryStatus.EXISTING
                and entry.snapshot_id == manifest.added_snapshot_id
                and file.spec_id == manifest.partition_spec_id
                and file.is_data is (manifest.content is ManifestContent.DATA)
                and file.file_path not in others
            ):
                found[file.file_path, file.content_offset] = replace(entry, status=ManifestEntryStatus.ADDED)
    return _counted(manifest, list(found.values()))


def _from_footers(examination: Examination, manifest: ManifestFile) -> list[ManifestEntry] | None:
    """Entries for the files in the table's folder that no manifest names."""
    metadata = examination.metadata
    if manifest.partition_spec_id not in metadata.specs_by_id:
        return None
    if manifest.existing_files_count and manifest.added_files_count:
        return None
    files = {_key(entry.data_file): entry.data_file for entries in examination.entries.values() for entry in entries}
    named = {path for path, offset in files if offset is None}
    locations = [location for location in content_locations(examination) if location not in named]
    describe = _describer(examination, manifest, {file.file_path: file for file in files.values() if file.is_data})
    described = [
        file
        for found in in_parallel(describe, locations, metadata.location)
        for file in found
        if _key(file) not in files and file.spec_id == manifest.partition_spec_id
    ]
    lowest, own = manifest.min_sequence_number or 0, manifest.sequence_number or 0
    status = ManifestEntryStatus.EXISTING if manifest.existing_files_count else ManifestEntryStatus.ADDED
    number = own if status is ManifestEntryStatus.ADDED else lowest
    entries = [
        ManifestEntry(status, manifest.added_snapshot_id, lowest, number, file)
        for file in _with_row_ids(described, manifest)
    ]
    return _counted(manifest, entries)


def _key(file: DataFile) -> tuple[str, int | None]:
    return file.file_path, file.content_offset


def _with_row_ids(files: Iterable[DataFile], manifest: ManifestFile) -> list[DataFile]:
    free, result = manifest.first_row_id, []
    for file in files:
        result.append(replace(file, first_row_id=free))
        free = None if free is None else free + file.record_count
    return result


def _describer(
    examination: Examination, manifest: ManifestFile, targets: dict[str, DataFile]
) -> Callable[[str], list[DataFile]]:
    """What describes a file of the manifest's kind and spec; nothing if it is none, or its partition is unclear.

    Raises:
        StorageError: the storage does not let the file be read.
    """
    metadata = replace(examination.metadata, default_spec_id=manifest.partition_spec_id)
    mapping = metadata.name_mapping() or create_name_mapping(metadata.schema())
    modes = metrics_modes(metadata.schema(), metadata.properties, metadata.sort_order())
    importer = FileImport(metadata, examination.storage, mapping, modes)
    deletes = DeleteFileImport(examination, importer, targets)

    def describe(location: str) -> list[DataFile]:
        try:
            if manifest.content is ManifestContent.DELETES:
                return deletes.describe(location)
            return [] if deletes.describe(location) else [importer.describe(location)]
        except DAMAGE:
            return []
        except StorageError:
            raise
        except IcebergError:
            return []

    return describe


def content_locations(examination: Examination) -> list[str]:
    """Locations of files in the table's own folder that may hold data or deletes, in the order of their names."""
    metadata = examination.metadata
    folder = LocationRules.of(metadata.location, metadata.properties).folder
    if not f"{folder}/".startswith(f"{metadata.location.rstrip('/')}/"):
        return []  # other tables may have files there too
    meta = metadata_folder(metadata.location, metadata.properties)
    return sorted(
        file.location
        for file in examination.storage.list(folder)
        if file.location.endswith(_ENDINGS) and not file.location.startswith(f"{meta}/")
    )


def _counted(manifest: ManifestFile, entries: list[ManifestEntry]) -> list[ManifestEntry] | None:
    """The entries where they are as many files and rows as the list says."""
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    rows = (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
    if len(entries) != files or sum(entry.data_file.record_count for entry in entries) != rows:
        return None
    return entries


def _without_removals(manifest: ManifestFile, entries: Sequence[ManifestEntry], source: str) -> Rebuilt:
    lost = []
    if manifest.deleted_files_count:
        lost.append(f"which {manifest.deleted_files_count} files the snapshot removed")
    if manifest.first_row_id is not None and len(entries) > 1 and "footers" in source:
        lost.append(f"the row ids of {len(entries)} files, which get others of the same range")
    return Rebuilt(tuple(entries), source, " and ".join(lost) or None)


def encoded(
    metadata: TableMetadata, manifest: ManifestFile, entries: Sequence[ManifestEntry], location: str
) -> tuple[bytes, ManifestFile]:
    """A manifest of these entries as a file, and its row for manifest lists."""
    spec = metadata.spec_by_id(manifest.partition_spec_id)
    data, counted = encode_manifest(
        entries,
        schema=metadata.schema_for_spec(spec),
        spec=spec,
        content=manifest.content,
        format_version=metadata.format_version,
        snapshot_id=manifest.added_snapshot_id,
        manifest_path=location,
    )
    number = manifest.sequence_number
    lowest = min((entry.sequence_number or 0 for entry in entries if entry.is_live), default=number)
    return data, replace(
        counted,
        manifest_path=location,
        manifest_length=len(data),
        sequence_number=number,
        min_sequence_number=lowest,
        first_row_id=manifest.first_row_id,
    )
