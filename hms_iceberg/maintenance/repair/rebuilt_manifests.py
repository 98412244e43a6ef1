"""Manifests, made anew from later manifests that carry the same files, and from the footers of files.

What comes out is taken for what was lost only if it has as many files and rows as manifest lists say. What is made of
files that no manifest names is a loss to be accepted, unless sizes, partitions and summaries agree as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hms_iceberg.maintenance.check.findings import WrongSummary
from hms_iceberg.maintenance.check.summary_check import EntryCounts, check_summary
from hms_iceberg.maintenance.repair.examination import Examination
from hms_iceberg.maintenance.repair.unnamed_files import UnnamedFiles, counts_of, own_share
from hms_iceberg.spec.manifests.manifest_avro import encode_manifest
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot

_SIZES = "total-files-size"


def doubts(
    examination: Examination, made: Mapping[str, Sequence[ManifestEntry]], counted: Mapping[str, ManifestFile]
) -> dict[str, str]:
    """By manifest location: why the rebuilt entries may be wrong, or that nothing confirms them, as part of a sentence.
    As many files and rows prove little: a failed attempt wrote as many as the one that was committed."""
    found = {place: "of other partitions" for place in made if not _same_partitions(examination, counted[place])}
    proven: set[str] = set()
    for snapshot_id, listed in examination.lists.items():
        places = [row.manifest_path for row in listed]
        own = [place for place in places if place in made]
        counts = _counts(examination, made, places, snapshot_id) if own else None
        if counts is None:
            continue
        snapshot = examination.metadata.snapshots_by_id[snapshot_id]
        wrong = [each for each in check_summary(snapshot, counts) if isinstance(each, WrongSummary)]
        if wrong:
            said = ", ".join(f"{each.key}={each.recorded} and not {each.found}" for each in wrong)
            for place in own:
                found.setdefault(place, f"snapshot {snapshot_id} says {said}")
        elif _SIZES in snapshot.summary:
            proven.update(own)
    return {place: "nothing tells their sizes" for place in made if place not in proven} | found


def _counts(
    examination: Examination, made: Mapping[str, Sequence[ManifestEntry]], places: Iterable[str], snapshot_id: int
) -> EntryCounts | None:
    """The totals of a snapshot over its rebuilt and its whole manifests; None if one of them is still damaged."""
    parts = []
    for place in places:
        if place in made:
            parts.append(EntryCounts.of(made[place]))
        elif place in examination.entries:
            parts.append(examination.entries.digest(place).counts)
        else:
            return None
    return EntryCounts.sum(parts, snapshot_id)


def _same_partitions(examination: Examination, counted: ManifestFile) -> bool:
    """Whether the bounds of partitions are those that manifest lists say, where they say any."""
    said = examination.rows[counted.manifest_path].partitions
    if not said or not counted.partitions:
        return True
    return [(each.lower_bound, each.upper_bound, each.contains_null) for each in said] == [
        (each.lower_bound, each.upper_bound, each.contains_null) for each in counted.partitions
    ]


@dataclass(frozen=True)
class Rebuilt:
    entries: tuple[ManifestEntry, ...]  # what it holds
    source: str  # from what it was made, in words
    loses: str | None = None  # what of the old one is lost


def rebuild_manifests(examination: Examination) -> dict[str, Rebuilt]:
    """The entries that each damaged manifest held, by its location, as far as that is certain."""
    damaged = [
        row
        for location, row in examination.rows.items()
        if location in examination.damaged_manifests
        and row.added_files_count is not None
        and row.existing_files_count is not None
    ]
    found: dict[str, Rebuilt] = {}
    for manifest in damaged:
        carried = _carried(examination, manifest)
        if carried is not None:
            source = "from later manifests that name the same files"
            found[manifest.manifest_path] = _without_removals(manifest, carried, source)
    left = [each for each in damaged if each.manifest_path not in found]
    adopted: list[str] = []
    unnamed = UnnamedFiles.of(examination) if left else None
    for manifest in left:
        if unnamed is None or not (_has_exact_numbers(manifest) or not _depends_on_numbers(examination, manifest)):
            continue
        beside = [each for each in left if (each.content, each.partition_spec_id) == _kind(manifest)]
        entries = _from_footers(unnamed, manifest, [each for each in beside if each is not manifest])
        if entries is not None:
            source = "from the footers of the files that no other manifest names"
            found[manifest.manifest_path] = _without_removals(manifest, entries, source)
            adopted.append(manifest.manifest_path)
    return _with_doubts(examination, found, adopted)


def _with_doubts(examination: Examination, found: dict[str, Rebuilt], adopted: Iterable[str]) -> dict[str, Rebuilt]:
    """Adds the doubts: files that no manifest names may not be the lost ones, which the user must accept."""
    made = {location: rebuilt.entries for location, rebuilt in found.items()}
    rows = {place: encoded(examination.metadata, examination.rows[place], made[place], place)[1] for place in made}
    told = doubts(examination, made, rows)
    for location in adopted:
        if location in told:
            count = len(made[location])
            loses = f"what was lost: {count} files may be of a failed attempt to write it ({told[location]})"
            known = found[location].loses
            found[location] = replace(found[location], loses=f"{known} and {loses}" if known else loses)
    return found


def _kind(manifest: ManifestFile) -> tuple[ManifestContent, int]:
    return manifest.content, manifest.partition_spec_id


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
        for row in examination.rows.values()
        if row.content is ManifestContent.DELETES and row.manifest_path in examination.entries
        for entry in examination.entries.each(row.manifest_path)
    )


def _carried(examination: Examination, manifest: ManifestFile) -> list[ManifestEntry] | None:
    """The entries of a manifest of which all files were added by its snapshot, from manifests that carry them on."""
    if manifest.existing_files_count:
        return None
    found: dict[tuple[str, int | None], ManifestEntry] = {}
    for entry in examination.entries.everywhere(metrics=True):
        file = entry.data_file
        if (
            entry.status is ManifestEntryStatus.EXISTING
            and entry.snapshot_id == manifest.added_snapshot_id
            and file.spec_id == manifest.partition_spec_id
            and file.is_data is (manifest.content is ManifestContent.DATA)
        ):
            found[file.file_path, file.content_offset] = replace(entry, status=ManifestEntryStatus.ADDED)
    return _counted(manifest, _not_beside(examination, manifest, found)) if found else None


def _not_beside(
    examination: Examination, manifest: ManifestFile, found: Mapping[tuple[str, int | None], ManifestEntry]
) -> list[ManifestEntry]:
    """The entries found for a manifest, without files that another manifest of the same manifest list holds: a file is
    in one manifest of a list only."""
    beside = {
        other.manifest_path
        for listed in examination.lists.values()
        if any(each.manifest_path == manifest.manifest_path for each in listed)
        for other in listed
    }
    paths = {path for path, _ in found}
    taken = {
        entry.data_file.file_path
        for location in beside
        if location in examination.entries
        for entry in examination.entries.each(location)
        if entry.is_live and entry.data_file.file_path in paths
    }
    return [entry for (path, _), entry in found.items() if path not in taken]


def _from_footers(
    unnamed: UnnamedFiles, manifest: ManifestFile, beside: Sequence[ManifestFile]
) -> list[ManifestEntry] | None:
    """Entries for the files that no manifest names; `beside` are other lost manifests of the same content and spec."""
    if manifest.partition_spec_id not in unnamed.examination.metadata.specs_by_id:
        return None
    if manifest.existing_files_count and manifest.added_files_count:
        return None
    described = own_share(unnamed.described(manifest), manifest, beside)
    if described is None:
        return None
    lowest, own = manifest.min_sequence_number or 0, manifest.sequence_number or 0
    status = ManifestEntryStatus.EXISTING if manifest.existing_files_count else ManifestEntryStatus.ADDED
    number = own if status is ManifestEntryStatus.ADDED else lowest
    return [
        ManifestEntry(status, manifest.added_snapshot_id, lowest, number, file)
        for file in _with_row_ids(described, manifest)
    ]


def _with_row_ids(files: Iterable[DataFile], manifest: ManifestFile) -> list[DataFile]:
    free, result = manifest.first_row_id, []
    for file in files:
        result.append(replace(file, first_row_id=free))
        free = None if free is None else free + file.record_count
    return result


def _counted(manifest: ManifestFile, entries: list[ManifestEntry]) -> list[ManifestEntry] | None:
    """The entries if they are as many files and rows as the manifest list says, else None."""
    fits = (len(entries), sum(entry.data_file.record_count for entry in entries)) == counts_of(manifest)
    return entries if fits else None


def _without_removals(manifest: ManifestFile, entries: Sequence[ManifestEntry], source: str) -> Rebuilt:
    lost = []
    if manifest.deleted_files_count:
        lost.append(f"which {manifest.deleted_files_count} files the snapshot removed")
    if manifest.first_row_id is not None and len(entries) > 1 and "footers" in source:
        lost.append(f"the row ids of {len(entries)} files, which get others of the same range")
    return Rebuilt(tuple(entries), source, " and ".join(lost) or None)


def encoded(
    metadata: TableMetadata,
    manifest: ManifestFile,
    entries: Sequence[ManifestEntry],
    location: str,
    snapshot: Snapshot | None = None,
) -> tuple[bytes, ManifestFile]:
    """The bytes of a manifest of these entries, and its row; `snapshot` added it, by default that of the old row."""
    spec = metadata.spec_by_id(manifest.partition_spec_id)
    data, counted = encode_manifest(
        entries,
        schema=metadata.schema_for_spec(spec),
        spec=spec,
        content=manifest.content,
        format_version=metadata.format_version,
        snapshot_id=manifest.added_snapshot_id if snapshot is None else snapshot.snapshot_id,
        manifest_path=location,
    )
    number = manifest.sequence_number if snapshot is None else snapshot.sequence_number
    lowest = min((entry.sequence_number or 0 for entry in entries if entry.is_live), default=number)
    return data, replace(
        counted, sequence_number=number, min_sequence_number=lowest, first_row_id=manifest.first_row_id
    )
