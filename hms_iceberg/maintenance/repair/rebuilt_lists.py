"""Manifest lists, made anew from those of the snapshots before and after, and from manifests in the table's folder.

A list is taken for what was lost only where the summary of its snapshot says the same of it: how many files, rows and
deletes there are in all, and how many the snapshot added and removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hms_iceberg.maintenance.check.summary_check import EntryCounts, check_summary
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination
from hms_iceberg.maintenance.side_by_side import in_parallel
from hms_iceberg.spec.manifests.avro_container import read_container
from hms_iceberg.spec.manifests.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, encode_manifest
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots import Snapshot
from hms_iceberg.spec.table_properties import metadata_folder

_NEEDED = ("total-data-files", "total-records", "total-delete-files")
_NUMBERS = re.compile(r"\d+")


def rebuild_lists(examination: Examination) -> dict[int, list[ManifestFile]]:
    """The manifests of snapshots whose list is damaged, as far as they can be told.

    Rebuilt lists help to rebuild those beside them: this goes on until nothing more is found.
    """
    found: dict[int, list[ManifestFile]] = {}
    snapshots = [each for each in examination.metadata.snapshots if each.snapshot_id in examination.damaged_lists]
    unlisted = _unlisted(examination) if snapshots else []
    while True:
        before = len(found)
        for snapshot in snapshots:
            number = snapshot.snapshot_id
            if number in found:
                continue
            manifests = _after_its_child(examination, snapshot) or _after_its_parent(examination, snapshot, unlisted)
            if manifests is not None:
                found[number] = examination.lists[number] = manifests
        if len(found) == before:
            return found


def _after_its_child(examination: Examination, snapshot: Snapshot) -> list[ManifestFile] | None:
    """What a snapshot made from this one kept of it."""
    for child in examination.metadata.snapshots:
        if child.parent_snapshot_id == snapshot.snapshot_id and child.snapshot_id in examination.lists:
            listed = examination.lists[child.snapshot_id]
            kept = [manifest for manifest in listed if manifest.added_snapshot_id != child.snapshot_id]
            if _fits(examination, snapshot, kept):
                return kept
    return None


def _after_its_parent(
    examination: Examination, snapshot: Snapshot, unlisted: Sequence[ManifestFile]
) -> list[ManifestFile] | None:
    """The manifests that the snapshot wrote, and those of its parent whose files these do not name."""
    parent = snapshot.parent_snapshot_id
    if parent is not None and parent not in examination.lists:
        return None
    own = _own_manifests(examination, snapshot, unlisted)
    named = {entry.data_file.file_path for manifest in own for entry in examination.entries[manifest.manifest_path]}
    before = examination.lists[parent] if parent is not None else []
    kept = [each for each in before if not named & _live(examination, each)]
    manifests = [*_with_row_ids(own, snapshot), *kept]
    return manifests if _fits(examination, snapshot, manifests) else None


def _live(examination: Examination, manifest: ManifestFile) -> set[str]:
    entries = examination.entries.get(manifest.manifest_path, ())
    return {entry.data_file.file_path for entry in entries if entry.is_live}


def _own_manifests(
    examination: Examination, snapshot: Snapshot, unlisted: Sequence[ManifestFile]
) -> list[ManifestFile]:
    known = [each for each in examination.rows.values() if each.added_snapshot_id == snapshot.snapshot_id]
    names = {each.manifest_path for each in known}
    own = [each for each in known if each.manifest_path in examination.entries]
    for probe in unlisted:
        entries = examination.entries[probe.manifest_path]
        writers = {entry.snapshot_id for entry in entries if entry.status is not ManifestEntryStatus.EXISTING}
        if writers == {snapshot.snapshot_id} and probe.manifest_path not in names:
            entries = [_inherited(entry, snapshot) for entry in entries]
            examination.entries[probe.manifest_path] = entries
            own.append(described(examination.metadata, probe, entries, snapshot))
    return sorted(own, key=lambda each: [int(number) for number in _NUMBERS.findall(_name(each))][-1:])


def _name(manifest: ManifestFile) -> str:
    return manifest.manifest_path.rpartition("/")[2]


def _inherited(entry: ManifestEntry, snapshot: Snapshot) -> ManifestEntry:
    """An entry with the numbers that it leaves to its manifest list."""
    number = snapshot.sequence_number
    return replace(
        entry,
        sequence_number=number if entry.sequence_number is None else entry.sequence_number,
        file_sequence_number=number if entry.file_sequence_number is None else entry.file_sequence_number,
    )


def _with_row_ids(own: Iterable[ManifestFile], snapshot: Snapshot) -> list[ManifestFile]:
    """Data manifests with the first of their row ids, as the list gave them: one after the other."""
    free, result = snapshot.first_row_id, []
    for manifest in own:
        if free is not None and manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            manifest = replace(manifest, first_row_id=free)
            free += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        result.append(manifest)
    return result


def described(
    metadata: TableMetadata, manifest: ManifestFile, entries: Sequence[ManifestEntry], snapshot: Snapshot | None = None
) -> ManifestFile:
    """The row of a manifest list for a manifest, counted from its entries."""
    spec = metadata.spec_by_id(manifest.partition_spec_id)
    _, counted = encode_manifest(
        entries,
        schema=metadata.schema_for_spec(spec),
        spec=spec,
        content=manifest.content,
        format_version=metadata.format_version,
        snapshot_id=manifest.added_snapshot_id if snapshot is None else snapshot.snapshot_id,
    )
    number = manifest.sequence_number if snapshot is None else snapshot.sequence_number
    return replace(
        counted,
        manifest_path=manifest.manifest_path,
        manifest_length=manifest.manifest_length,
        sequence_number=number,
        min_sequence_number=min((entry.sequence_number or 0 for entry in entries if entry.is_live), default=number),
        first_row_id=manifest.first_row_id,
        key_metadata=manifest.key_metadata,
    )


def _fits(examination: Examination, snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> bool:
    """Whether the snapshot's summary says of these manifests what they hold."""
    entries = examination.entries_of(manifests)
    if entries is None or any(key not in snapshot.summary for key in _NEEDED):
        return False
    return not list(check_summary(snapshot, EntryCounts.of(entries)))


def _unlisted(examination: Examination) -> list[ManifestFile]:
    """Manifests in the table's metadata folder that no list names; their entries are noted in the examination."""
    metadata, known = examination.metadata, examination.rows.keys()
    lists = {snapshot.manifest_list for snapshot in metadata.snapshots}
    folder = metadata_folder(metadata.location, metadata.properties)
    locations = [
        (file.location, file.size)
        for file in examination.storage.list(folder)
        if file.location.endswith(".avro") and file.location not in known and file.location not in lists
    ]
    found = []
    for read in in_parallel(lambda each: _probed(examination, *each), locations, metadata.location):
        if read is not None:
            probe, entries = read
            examination.entries[probe.manifest_path] = entries
            found.append(probe)
    return found


def _probed(examination: Examination, location: str, size: int) -> tuple[ManifestFile, list[ManifestEntry]] | None:
    """A manifest that nobody describes; None for other files, and for manifests that say not whose they are."""
    try:
        data = examination.storage.read(location)
        container = read_container(data, location)
        deletes = container.text("content") == ManifestContent.DELETES.label
        probe = ManifestFile(
            manifest_path=location,
            manifest_length=size,
            partition_spec_id=int(container.text("partition-spec-id") or 0),
            added_snapshot_id=-1,
            content=ManifestContent.DELETES if deletes else ManifestContent.DATA,
            sequence_number=None,
            min_sequence_number=None,
        )
        entries = decode_manifest(data, probe, checked=False)
    except (*DAMAGE, ValueError):
        return None
    writers = {entry.snapshot_id for entry in entries if entry.status is ManifestEntryStatus.ADDED}
    if len(writers) > 1 or -1 in writers or probe.partition_spec_id not in examination.metadata.specs_by_id:
        return None
    return probe, entries
