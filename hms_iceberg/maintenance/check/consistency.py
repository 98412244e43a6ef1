"""Checks that what a table's metadata says is what its files hold.

Nothing is repaired, and nothing is believed: summaries are compared with manifest lists, these with manifests, and
manifests with the files they name.

Source: Iceberg specification, "Manifests", "Manifest Lists", "Snapshots", "Row Lineage", "Optional Snapshot Summary
Fields".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.encryption.encrypted_tables import decrypted, manifest_bytes
from hms_iceberg.errors import IcebergError, NoSuchSnapshotError
from hms_iceberg.hms.rows.transaction_marks import Mark
from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.bounds_check import Bounds
from hms_iceberg.maintenance.check.digests import Listed, ManifestDigest, digest, file_key
from hms_iceberg.maintenance.check.file_check import Values, check_file, unread
from hms_iceberg.maintenance.check.findings import Finding, check_owner
from hms_iceberg.maintenance.check.manifest_check import check_manifest
from hms_iceberg.maintenance.check.statistics_check import (
    check_repeated,
    check_row_ids,
    partition_statistics_damage,
    statistics_damage,
)
from hms_iceberg.maintenance.check.summary_check import EntryCounts, check_summary
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.spec.manifests.manifest_avro import iterate_manifest
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestEntry, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import PREVIEWED_FORMAT_VERSION, TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage
from hms_iceberg.table.file_system_metastore import FileSystemMetastore
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.intents import open_among

Progress = Callable[[str, int, int], None]

# No owner that lives takes so long from its intent to the end.
_OPEN_SECONDS = 600
# Manifests that are decoded and not looked at yet; each may have many thousand entries.
_MANIFESTS_AHEAD = 3


@dataclass(frozen=True)
class ConsistencyReport:
    """The findings of a check, and how many files it read.

    Attributes:
        metadata_location: the version of the table that was checked.
        findings: the problems, none if the table is consistent.
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
    values: bool = False,
    snapshot_ids: Collection[int] | None = None,
    progress: Progress | None = None,
) -> ConsistencyReport:
    """Checks the metadata of a table against its files.

    Args:
        table: a table or static table, as loaded: changes since then are not seen.
        files: whether to look for every live file and compare its size (one request a file). Of a table that may have
            files of others (it has a name mapping), footers of Parquet files are compared with bounds too.
        record_counts: whether to compare record counts too, with footers (Parquet, ORC), blocks (Avro) and deletion
            vectors; opens every live file.
        values: whether to read every live file whole as well, which finds pages that changed on the disk: by their
            checksums, where a writer left some, and by the counts of nulls and the bounds that manifests say.
        snapshot_ids: the snapshots to check; None for all.
        progress: is called with what is looked at (`files`, or `manifests` without these), how many are done, and
            about how many there are.

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
    check.read(chosen, files, record_counts or values, values)
    for snapshot in chosen:
        check.snapshot(snapshot)
    if files:
        check.statistics()
    if isinstance(table, Table):
        check.transactions(table)
    findings = tuple(dict.fromkeys(check.findings))
    return ConsistencyReport(table.metadata_location, findings, len(chosen), len(check.digests), len(check.seen))


def _untold(what: str, done: int, of: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True)
class _Read:
    """A manifest that was read: its live files until they are looked at, and what was found in it."""

    manifest: ManifestFile
    digest: ManifestDigest | None
    files: tuple[DataFile, ...] = ()
    findings: tuple[Finding, ...] = ()


class _Check:
    """Collects findings. Manifests are read a few at a time, and once for all snapshots that share them: a digest of
    each, and a hash of each file, are kept, some 150 bytes a file."""

    def __init__(self, metadata: TableMetadata, storage: Storage, progress: Progress) -> None:
        self.metadata = metadata
        self.storage = storage
        self.findings: list[Finding] = []
        self.lists: dict[int, list[ManifestFile] | None] = {}
        self.digests: dict[ManifestFile, ManifestDigest | None] = {}
        self.seen: set[bytes] = set()
        self._progress = progress

    def owner(self, table: Table) -> None:
        """Checks that the metadata file belongs to the table that the metastore names, and is its newest one."""
        metastore, version = table.metastore, MetadataVersion(table.metadata_location, self.metadata)
        finding = check_owner(version, metastore.load(table.name()), self.storage)
        if finding is not None:
            self.findings.append(finding)
        damage = metastore.damage(table.name()) if isinstance(metastore, FileSystemMetastore) else None
        if damage is not None:
            self.findings.append(found.UnreachedVersion(damage.newest.location, str(damage)))

    def transactions(self, table: Table) -> None:
        """Tells of transactions on several tables whose owners left them open: by the row's mark, and by intents."""
        mark, told = Mark.of(table.metastore.load(table.name()).properties), {}
        folders = {table.metadata_location.rpartition("/")[0]}
        if mark is not None and mark.unfinished is not None:
            folders.add(mark.record.rpartition("/")[0])
            owner = mark.owner_process
            if owner is not None and not owner.may_be_alive():
                told[mark.transaction] = ".".join(mark.decides)
        oldest = (time.time() - _OPEN_SECONDS) * 1000
        files = (each for folder in sorted(folders) for each in self.storage.list(folder))
        for intent in open_among((each.location for each in files if 0 < each.modified_ms < oldest), self.storage):
            if any(each.uuid == self.metadata.table_uuid for each in intent.tables):
                told[intent.transaction_id] = ".".join(intent.tables[-1].identifier)
        self.findings += (found.UnfinishedTransaction(*each) for each in told.items())

    # ------------------------------------------------------------------------------------------- reading

    def read(self, snapshots: Sequence[Snapshot], files: bool, record_counts: bool, values: bool) -> None:
        """Reads the manifest lists of some snapshots and the manifests in them, and looks at their files."""
        near = self.metadata.location
        for snapshot, listed in zip(snapshots, in_parallel(self._read_list, snapshots, near), strict=True):
            self.lists[snapshot.snapshot_id] = None if isinstance(listed, Finding) else listed
            if isinstance(listed, Finding):
                self.findings.append(listed)
        manifests = list(dict.fromkeys(each for listed in self.lists.values() for each in listed or ()))
        self.digests = dict.fromkeys(manifests)
        reader = Values(self.metadata, self.storage) if values else None
        bounds = Bounds.to_check(self.metadata, self.storage, record_counts) if files else None
        unseen = self._unseen(manifests, None if files else self._progress, bounds is not None)
        if not files:
            for _ in unseen:
                pass
            return
        expected = sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests)
        looked = in_parallel(lambda same: check_file(self.storage, same, record_counts, bounds, reader), unseen, near)
        for done, findings in enumerate(looked, start=1):
            self.findings += findings
            self._progress("files", done, max(done, expected))

    def _read_list(self, snapshot: Snapshot) -> list[ManifestFile] | Finding:
        location = snapshot.manifest_list or ", ".join(snapshot.manifest_locations or ())
        try:
            return manifests_of(snapshot, self.storage, checked=False)
        except IcebergError as error:
            return unread(location, "manifest list", error)

    def _unseen(
        self, manifests: Sequence[ManifestFile], progress: Progress | None, metrics: bool
    ) -> Iterator[list[DataFile]]:
        """The live files of manifests that were in none before, each with all its entries in the manifest."""
        read_one = partial(self._read_manifest, metrics=metrics)
        reads = in_parallel(read_one, manifests, self.metadata.location, _MANIFESTS_AHEAD)
        for done, read in enumerate(reads, start=1):
            self.findings += read.findings
            self.digests[read.manifest] = read.digest
            by_location: dict[str, list[DataFile]] = {}
            for file in read.files:
                key = file_key(file)
                if key not in self.seen:
                    self.seen.add(key)
                    by_location.setdefault(file.file_path, []).append(file)
            yield from by_location.values()
            if progress is not None:
                progress("manifests", done, len(manifests))

    def _read_manifest(self, manifest: ManifestFile, metrics: bool = False) -> _Read:
        location, findings = manifest.manifest_path, []
        try:
            data = self.storage.read(location)
            # What a preview shows of a draft's manifest is not as long as its file.
            is_shown = self.metadata.format_version == PREVIEWED_FORMAT_VERSION
            length = self.storage.length(location) if is_shown else len(data)
            if length != manifest.manifest_length:
                findings.append(found.WrongFileSize(location, "manifest", manifest.manifest_length, length))
            content = decrypted(data, manifest.key_metadata, location)
            entries = list(iterate_manifest(content, manifest, metrics=metrics))
        except IcebergError as error:
            return _Read(manifest, None, (), (*findings, unread(location, "manifest", error)))
        live = tuple(entry.data_file for entry in entries if entry.is_live)
        return _Read(manifest, digest(entries), live, (*findings, *check_manifest(self.metadata, manifest, entries)))

    def _again(self, manifest: ManifestFile) -> list[ManifestEntry]:
        data = manifest_bytes(manifest, self.storage)
        return list(iterate_manifest(data, manifest, metrics=False))

    # ----------------------------------------------------------------------------------------- snapshots

    def snapshot(self, snapshot: Snapshot) -> None:
        """Checks one snapshot: its numbers, its manifests, its files as a whole."""
        self._numbers(snapshot)
        manifests = self.lists[snapshot.snapshot_id]
        if manifests is None:
            return
        for manifest in manifests:
            self._manifest_number(manifest, snapshot)
        listed = [(each, kept) for each in manifests if (kept := self.digests[each]) is not None]
        self.findings += check_repeated(snapshot, listed, self._again)
        if len(listed) == len(manifests):  # the counts of a snapshot that cannot be read whole mean nothing
            self.findings += check_summary(snapshot, _counts(snapshot, listed))
            self.findings += check_row_ids(snapshot, listed, self._again)

    def _numbers(self, snapshot: Snapshot) -> None:
        """Checks the snapshot's sequence number and row ids against those of its parent and of the table."""
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

    # ---------------------------------------------------------------------------------------- statistics

    def statistics(self) -> None:
        """Checks that statistics files exist, are whole, and are what the metadata says."""
        for file in self.metadata.statistics:
            self._statistics(file.statistics_path, partial(statistics_damage, self.storage, file))
        for partitions in self.metadata.partition_statistics:
            counts = self._counts_of(partitions.snapshot_id)
            self._statistics(
                partitions.statistics_path,
                partial(partition_statistics_damage, self.storage, partitions, counts),
            )

    def _statistics(self, location: str, damage: Callable[[], str | None]) -> None:
        try:
            reason = damage()
        except IcebergError as error:
            self.findings.append(unread(location, "statistics file", error))
        else:
            if reason is not None:
                self.findings.append(found.WrongStatistics(location, reason))

    def _counts_of(self, snapshot_id: int) -> EntryCounts | None:
        """The counts of a snapshot; None if it was not read whole."""
        digests = [self.digests[each] for each in self.lists.get(snapshot_id) or ()]
        if not digests or any(each is None for each in digests):
            return None
        return EntryCounts.sum((each.counts for each in digests if each is not None), snapshot_id)


def _counts(snapshot: Snapshot, listed: Sequence[Listed]) -> EntryCounts:
    return EntryCounts.sum((each.counts for _, each in listed), snapshot.snapshot_id)
