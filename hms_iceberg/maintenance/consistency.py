"""Checks that what a table's metadata says is what its files hold.

Nothing is repaired, and nothing is believed: summaries are compared with manifest lists, these with manifests, and
manifests with the files they name.

Source: Iceberg specification, "Manifests", "Manifest Lists", "Snapshots", "Row Lineage", "Optional Snapshot Summary
Fields".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.readers import open_reader
from hms_iceberg.errors import IcebergError, MissingFileError, NoSuchSnapshotError
from hms_iceberg.maintenance import findings as found
from hms_iceberg.maintenance.findings import Finding
from hms_iceberg.maintenance.manifest_check import check_manifest
from hms_iceberg.maintenance.side_by_side import in_parallel
from hms_iceberg.maintenance.summary_check import check_summary
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.spec.manifests.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots import Snapshot
from hms_iceberg.storage import Storage
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.table.table import Table

Listed = tuple[ManifestFile, list[ManifestEntry]]
Progress = Callable[[str, int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class ConsistencyReport:
    """What a check found, and how much it looked at.

    Attributes:
        metadata_location: the version of the table that was checked.
        findings: the problems, none where the table is consistent.
        snapshots, manifests, files: how many were looked at; a file of several snapshots counts once.
    """

    metadata_location: str
    findings: tuple[Finding, ...]
    snapshots: int
    manifests: int
    files: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        head = (
            f"{self.metadata_location}: {self.snapshots} snapshots, {self.manifests} manifests, {self.files} files "
            f"checked, {len(self.findings)} problems"
        )
        return "\n".join([head, *(f"- {finding}" for finding in self.findings)])


def check_table(
    table: ReadableTable,
    *,
    files: bool = True,
    record_counts: bool = False,
    snapshot_ids: Collection[int] | None = None,
    progress: Progress | None = None,
) -> ConsistencyReport:
    """Checks the metadata of a table against its files.

    Args:
        table: a table or static table, as loaded: changes since then are not seen.
        files: whether to look for every live file and compare its size (one request a file).
        record_counts: whether to compare record counts too, with footers (Parquet, ORC), blocks (Avro) and deletion
            vectors; opens every live file.
        snapshot_ids: the snapshots to check; None for all.
        progress: is told what is looked at (`manifests`, `files`), how many are done, and how many there are.

    Returns:
        A report with one finding for each problem. A file that cannot be read is a finding, not an error.

    Raises:
        NoSuchSnapshotError: one of `snapshot_ids` is not a snapshot of the table.
    """
    metadata = table.metadata
    unknown = sorted(set(snapshot_ids or ()) - metadata.snapshots_by_id.keys())
    if unknown:
        raise NoSuchSnapshotError(
            f"Cannot check the table at {metadata.location}: it has no snapshot {unknown[0]}. Its snapshots are "
            f"{sorted(metadata.snapshots_by_id)}."
        )
    check = _Check(metadata, table.storage, progress or _untold)
    if isinstance(table, Table):
        check.owner(table)
    chosen = [each for each in metadata.snapshots if snapshot_ids is None or each.snapshot_id in snapshot_ids]
    check.read(chosen)
    for snapshot in chosen:
        check.snapshot(snapshot)
    if files:
        check.statistics()
        check.files(record_counts)
    return ConsistencyReport(
        table.metadata_location, tuple(check.findings), len(chosen), len(check.manifests), len(check.live)
    )


def _untold(what: str, done: int, of: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class _Read:
    """What was read of a file, None where it cannot be; and what was found in it."""

    content: Any
    findings: tuple[Finding, ...] = ()


class _Check:
    """Collects findings; manifests and files that several snapshots share are looked at once.

    Files are looked at several at a time. What is kept of a manifest is its entries without column metrics.
    """

    def __init__(self, metadata: TableMetadata, storage: Storage, progress: Progress) -> None:
        self.metadata = metadata
        self.storage = storage
        self.findings: list[Finding] = []
        self.lists: dict[int, _Read] = {}
        self.manifests: dict[ManifestFile, _Read] = {}
        self.live: dict[tuple[str, int | None], DataFile] = {}
        self._progress = progress

    def read(self, snapshots: Sequence[Snapshot]) -> None:
        """Reads the manifest lists of some snapshots, and the manifests in them."""
        near = self.metadata.location
        for snapshot, read in zip(snapshots, in_parallel(self._read_list, snapshots, near), strict=True):
            self.lists[snapshot.snapshot_id] = read
        rows = list(dict.fromkeys(row for read in self.lists.values() for row in read.content or ()))
        reads = self._followed("manifests", in_parallel(self._read_manifest, rows, near), len(rows))
        self.manifests = dict(zip(rows, reads, strict=True))

    def _followed(self, what: str, results: Iterable[T], of: int) -> Iterator[T]:
        """The results, told of as they come."""
        for done, result in enumerate(results, start=1):
            self._progress(what, done, of)
            yield result

    def owner(self, table: Table) -> None:
        """The metadata is that of the table that the metastore means."""
        recorded = table.metastore.load(table.name()).properties.get("uuid")
        if recorded is not None and self.metadata.table_uuid not in (None, recorded):
            self.findings.append(found.OtherTable(table.metadata_location, recorded, self.metadata.table_uuid))

    def snapshot(self, snapshot: Snapshot) -> None:
        """One snapshot: its numbers, its manifests, its files as a whole."""
        self._numbers(snapshot)
        read = self.lists[snapshot.snapshot_id]
        self.findings += read.findings
        if read.content is None:
            return
        listed: list[Listed] = []
        for manifest in read.content:
            entries = self._entries(manifest)
            if entries is not None:
                listed.append((manifest, entries))
            self._manifest_number(manifest, snapshot)
        live = [entry.data_file for _, entries in listed for entry in entries if entry.is_live]
        self.live.update(((file.file_path, file.content_offset), file) for file in live)
        self._repeated(snapshot, live)
        if len(listed) == len(read.content):  # the counts of a snapshot that cannot be read whole mean nothing
            self.findings += check_summary(snapshot, [entry for _, entries in listed for entry in entries])
            self._row_ids(snapshot, listed)

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry] | None:
        """The entries of a manifest; None where it cannot be read. What was found in it is told once."""
        read = self.manifests[manifest]
        self.findings += read.findings
        self.manifests[manifest] = _Read(read.content)
        entries: list[ManifestEntry] | None = read.content
        return entries

    def _read_list(self, snapshot: Snapshot) -> _Read:
        location = snapshot.manifest_list or ", ".join(snapshot.manifest_locations or ())
        try:
            return _Read(manifests_of(snapshot, self.storage, checked=False))
        except IcebergError as error:
            return _Read(None, (_unread(location, "manifest list", error),))

    def _read_manifest(self, manifest: ManifestFile) -> _Read:
        location, findings = manifest.manifest_path, []
        try:
            data = self.storage.read(location)
            if len(data) != manifest.manifest_length:
                findings.append(found.WrongFileSize(location, "manifest", manifest.manifest_length, len(data)))
            entries = decode_manifest(data, manifest, checked=False)
        except IcebergError as error:
            return _Read(None, (*findings, _unread(location, "manifest", error)))
        slim = [replace(entry, data_file=entry.data_file.without_metrics()) for entry in entries]
        return _Read(slim, (*findings, *check_manifest(self.metadata, manifest, entries)))

    # ---------------------------------------------------------------------------------- sequence numbers

    def _numbers(self, snapshot: Snapshot) -> None:
        """The snapshot's own sequence number and row ids against those of its parent and its table."""
        metadata, where = self.metadata, f"snapshot {snapshot.snapshot_id}"
        if metadata.format_version > 1 and snapshot.sequence_number > metadata.last_sequence_number:
            reason = f"it is {snapshot.sequence_number}, the table's last one is {metadata.last_sequence_number}"
            self.findings.append(found.WrongSequenceNumber(where, reason))
        parent = metadata.snapshots_by_id.get(snapshot.parent_snapshot_id or -1)
        if parent is not None and parent.sequence_number >= max(snapshot.sequence_number, 1):
            reason = f"it is {snapshot.sequence_number}, that of its parent {parent.sequence_number}"
            self.findings.append(found.WrongSequenceNumber(where, reason))
        if snapshot.first_row_id is not None:
            last = snapshot.first_row_id + (snapshot.added_rows or 0)
            if last > (metadata.next_row_id or 0):
                reason = f"it assigns those up to {last}, the table's next one is {metadata.next_row_id}"
                self.findings.append(found.WrongRowIds(where, reason))

    def _manifest_number(self, manifest: ManifestFile, snapshot: Snapshot) -> None:
        number = manifest.sequence_number or 0
        if number > snapshot.sequence_number:
            reason = (
                f"it is {number}, that of snapshot {snapshot.snapshot_id}, which holds it, {snapshot.sequence_number}"
            )
            self.findings.append(found.WrongSequenceNumber(f"the manifest {manifest.manifest_path}", reason))

    # ------------------------------------------------------------------------------- files of a snapshot

    def _repeated(self, snapshot: Snapshot, live: Sequence[DataFile]) -> None:
        times = Counter((file.file_path, file.content_offset) for file in live)
        for (location, _), count in times.items():
            if count > 1:
                self.findings.append(found.RepeatedFile(snapshot.snapshot_id, location, count))
        vectors = Counter(
            file.referenced_data_file for file in live if file.is_deletion_vector and file.referenced_data_file
        )
        for location, count in vectors.items():
            if count > 1:
                self.findings.append(found.SecondDeletionVector(snapshot.snapshot_id, location, count))

    def _row_ids(self, snapshot: Snapshot, listed: Iterable[Listed]) -> None:
        """Every live row has an id of its own, below the table's next one."""
        if snapshot.first_row_id is None:
            return
        ranges: list[tuple[int, int, str]] = []
        for manifest, entries in listed:
            if manifest.content is not ManifestContent.DATA:
                continue
            for file in (entry.data_file for entry in entries if entry.is_live):
                if file.first_row_id is None:
                    reason = f"it has none in snapshot {snapshot.snapshot_id}"
                    self.findings.append(found.WrongRowIds(f"the file {file.file_path}", reason))
                    continue
                ranges.append((file.first_row_id, file.first_row_id + file.record_count, file.file_path))
        ranges.sort()
        for before, after in pairwise(ranges):
            if after[0] < before[1]:
                reason = f"they begin at {after[0]}, within those of {before[2]} ({before[0]} to {before[1] - 1})"
                self.findings.append(found.WrongRowIds(f"the file {after[2]}", reason))
        limit = snapshot.first_row_id + (snapshot.added_rows or 0)
        for first, end, location in ranges:
            if end > limit:
                reason = f"they are {first} to {end - 1}, snapshot {snapshot.snapshot_id} assigned those below {limit}"
                self.findings.append(found.WrongRowIds(f"the file {location}", reason))

    # ------------------------------------------------------------------------------------ files themselves

    def statistics(self) -> None:
        """The files with statistics are there, in the size that the metadata says."""
        recorded = [(item.statistics_path, item.file_size_in_bytes) for item in self.metadata.statistics]
        recorded += [(item.statistics_path, item.file_size_in_bytes) for item in self.metadata.partition_statistics]
        for location, size in recorded:
            self.findings += self._size(location, "statistics file", size)

    def files(self, record_counts: bool) -> None:
        """Every live file is there in its size and, on request, with its number of records."""
        by_location: dict[str, list[DataFile]] = {}
        for file in self.live.values():
            by_location.setdefault(file.file_path, []).append(file)

        def look(same: list[DataFile]) -> list[Finding]:
            role = _role(same[0])
            findings = self._size(same[0].file_path, role, same[0].file_size_in_bytes)
            if record_counts and not any(isinstance(each, found.MissingFile) for each in findings):
                findings += [finding for file in same for finding in self._records(file)]
            return findings

        looked = in_parallel(look, by_location.values(), self.metadata.location)
        for findings in self._followed("files", looked, len(by_location)):
            self.findings += findings

    def _size(self, location: str, role: str, recorded: int) -> list[Finding]:
        try:
            size = self.storage.length(location)
        except IcebergError as error:
            return [_unread(location, role, error)]
        return [] if size == recorded else [found.WrongFileSize(location, role, recorded, size)]

    def _records(self, file: DataFile) -> Iterator[Finding]:
        try:
            records = count_records(self.storage, file)
        except IcebergError as error:
            yield found.UnreadableFile(file.file_path, _role(file), str(error))
            return
        if records != file.record_count:
            yield found.WrongRecordCount(file.file_path, file.record_count, records)


def _role(file: DataFile) -> str:
    return "data file" if file.is_data else "delete file"


def _unread(location: str, role: str, error: IcebergError) -> Finding:
    """A file that is not there, or that cannot be read."""
    if isinstance(error, MissingFileError):
        return found.MissingFile(location, role)
    return found.UnreadableFile(location, role, str(error))


def count_records(storage: Storage, file: DataFile) -> int:
    """How many rows a file has, or positions a deletion vector; raises `IcebergError` where it is damaged."""
    if file.is_deletion_vector:
        return len(read_deletion_vector(storage, file))
    reader = open_reader(storage, file.file_path, file.file_format)
    try:
        return sum(each.rows for each in reader.ranges())
    finally:
        reader.close()
