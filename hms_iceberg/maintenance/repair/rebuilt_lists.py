"""Manifest lists, made anew from those of the snapshots before and after, and from manifests in the table's folder.

A list is taken for what was lost only if the summary of its snapshot says the same of it: how many files, rows and
deletes there are in all, and how many the snapshot added and removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.maintenance.check.digests import ManifestDigest, digest, file_number
from hms_iceberg.maintenance.check.summary_check import EntryCounts, check_summary
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination
from hms_iceberg.maintenance.repair.rebuilt_manifests import encoded
from hms_iceberg.spec.manifests.avro_container import read_container
from hms_iceberg.spec.manifests.manifest_avro import iterate_manifest
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Places

_NEEDED = ("total-data-files", "total-records", "total-delete-files")
_NUMBERS = re.compile(r"\d+")


def rebuild_lists(examination: Examination) -> dict[int, list[ManifestFile]]:
    """The manifests of snapshots whose list is damaged, as far as they can be told. Rebuilt lists help to rebuild those
    beside them: this goes on until nothing more is found."""
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
                for manifest in manifests:
                    examination.entries.describe(manifest)
        if len(found) == before:
            return found


def _after_its_child(examination: Examination, snapshot: Snapshot) -> list[ManifestFile] | None:
    """The manifests of a snapshot as far as a child snapshot still lists them; None if no child lists them all."""
    for child in examination.metadata.snapshots:
        if child.parent_snapshot_id == snapshot.snapshot_id and child.snapshot_id in examination.lists:
            listed = examination.lists[child.snapshot_id]
            kept = [manifest for manifest in listed if manifest.added_snapshot_id != child.snapshot_id]
            if _fits(examination, snapshot, kept):
                return kept
    return None


def _after_its_parent(
    examination: Examination, snapshot: Snapshot, unlisted: Sequence[Unlisted]
) -> list[ManifestFile] | None:
    """The manifests that the snapshot wrote, and those of its parent that list none of the same files."""
    parent = snapshot.parent_snapshot_id
    if parent is not None and parent not in examination.lists:
        return None
    own = _own_manifests(examination, snapshot, unlisted)
    named = {
        file_number(entry.data_file) for manifest in own for entry in examination.entries.each(manifest.manifest_path)
    }
    before = examination.lists[parent] if parent is not None else []
    kept = [each for each in before if named.isdisjoint(_live(examination, each))]
    manifests = [*_with_row_ids(own, snapshot), *kept]
    return manifests if _fits(examination, snapshot, manifests) else None


def _live(examination: Examination, manifest: ManifestFile) -> Iterable[int]:
    whole = manifest.manifest_path in examination.entries
    return examination.entries.digest(manifest.manifest_path).files["file"] if whole else ()


def _own_manifests(examination: Examination, snapshot: Snapshot, unlisted: Sequence[Unlisted]) -> list[ManifestFile]:
    known = [each for each in examination.rows.values() if each.added_snapshot_id == snapshot.snapshot_id]
    names = {each.manifest_path for each in known}
    own = [each for each in known if each.manifest_path in examination.entries]
    for probe in unlisted:
        location = probe.manifest.manifest_path
        numbered = probe.is_numbered or not snapshot.sequence_number
        if probe.writers == {snapshot.snapshot_id} and numbered and location not in names:
            row = replace(
                probe.manifest, added_snapshot_id=snapshot.snapshot_id, sequence_number=snapshot.sequence_number
            )
            examination.entries.describe(row)
            entries = list(examination.entries.each(location))
            own.append(described(examination.metadata, row, entries, snapshot))
    return sorted(own, key=lambda each: [int(number) for number in _NUMBERS.findall(_name(each))][-1:])


def _name(manifest: ManifestFile) -> str:
    return manifest.manifest_path.rpartition("/")[2]


def _with_row_ids(own: Iterable[ManifestFile], snapshot: Snapshot) -> list[ManifestFile]:
    """Data manifests with their first row ids: assigned one after the other, in the order of the list."""
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
    _, counted = encoded(metadata, manifest, entries, manifest.manifest_path, snapshot)
    return replace(counted, manifest_length=manifest.manifest_length, key_metadata=manifest.key_metadata)


def _fits(examination: Examination, snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> bool:
    """Whether the totals in the snapshot's summary agree with these manifests."""
    listed = examination.entries.digests(manifests)
    if listed is None or any(key not in snapshot.summary for key in _NEEDED):
        return False
    counts = EntryCounts.sum((each.counts for _, each in listed), snapshot.snapshot_id)
    return not list(check_summary(snapshot, counts))


@dataclass(frozen=True)
class Unlisted:
    """A manifest that no list names."""

    manifest: ManifestFile  # what the file says of itself
    writers: set[int | None]  # the snapshots that added or removed its entries
    is_numbered: bool  # whether only added entries leave their sequence number to a list


def _unlisted(examination: Examination) -> list[Unlisted]:
    """Manifests in the table's metadata folder that no list names; they are noted in the examination."""
    metadata, storage = examination.metadata, examination.storage
    lists = (snapshot.manifest_list for snapshot in metadata.snapshots)
    places = Places(storage)
    known = {places.anywhere(each) for each in (*examination.rows, *lists) if each is not None}
    folder = metadata_folder(metadata.location, metadata.properties)
    locations = [
        (file.location, file.size)
        for file in storage.list(folder)
        if file.location.endswith(".avro") and places.anywhere(file.location) not in known
    ]
    found = []
    for read in in_parallel(lambda each: _probed(examination, *each), locations, metadata.location):
        if read is not None:
            probe, kept = read
            examination.entries.add(probe.manifest, kept)
            found.append(probe)
    return found


def _probed(examination: Examination, location: str, size: int) -> tuple[Unlisted, ManifestDigest] | None:
    """A manifest file that no list describes, read for what it is; None for others and if its writer cannot be told."""
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
        entries = list(iterate_manifest(data, probe, metrics=False))
    except (*DAMAGE, ValueError):
        return None
    added = {entry.snapshot_id for entry in entries if entry.status is ManifestEntryStatus.ADDED}
    known = probe.partition_spec_id in examination.metadata.specs_by_id
    if len(added) > 1 or -1 in added or not known:
        return None
    writers = {entry.snapshot_id for entry in entries if entry.status is not ManifestEntryStatus.EXISTING}
    numbered = all(entry.sequence_number is not None for entry in entries if entry.snapshot_id not in added)
    return Unlisted(probe, writers, numbered), digest(entries)
