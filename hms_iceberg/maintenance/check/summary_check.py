"""A snapshot's summary against the entries of its manifests.

Source: Iceberg specification, "Optional Snapshot Summary Fields".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.snapshots_and_refs import Snapshot

# If a snapshot removed entries twice, its counts of removed files are those of the first ones.
_DUPLICATES = "deleted-duplicate-files"


@dataclass(frozen=True)
class EntryCounts:
    """Totals over manifest entries, under the keys of summaries."""

    live: Counter[str] = field(default_factory=lambda: Counter(_totals(())))  # the totals of live files
    added: Mapping[int | None, Counter[str]] = field(default_factory=dict)  # by snapshot, what it added
    removed: Mapping[int | None, Counter[str]] = field(default_factory=dict)  # by snapshot, what it removed

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry]) -> EntryCounts:
        live: list[DataFile] = []
        added: dict[int | None, list[DataFile]] = {}
        removed: dict[int | None, list[DataFile]] = {}
        for entry in entries:
            if entry.is_live:
                live.append(entry.data_file)
            if entry.status is ManifestEntryStatus.ADDED:
                added.setdefault(entry.snapshot_id, []).append(entry.data_file)
            elif entry.status is ManifestEntryStatus.DELETED:
                removed.setdefault(entry.snapshot_id, []).append(entry.data_file)
        return cls(
            Counter(_totals(live)),
            {owner: Counter(_changes(files, True)) for owner, files in added.items()},
            {owner: Counter(_changes(files, False)) for owner, files in removed.items()},
        )

    @classmethod
    def sum(cls, parts: Iterable[EntryCounts], snapshot_id: int) -> EntryCounts:
        """The live counts of several manifests together, and the changes of one snapshot alone."""
        total, added, removed = Counter(_totals(())), _no_changes(True), _no_changes(False)
        for part in parts:
            total.update(part.live)
            added.update(part.added.get(snapshot_id, {}))
            removed.update(part.removed.get(snapshot_id, {}))
        return cls(total, {snapshot_id: added}, {snapshot_id: removed})


def check_summary(snapshot: Snapshot, counts: EntryCounts) -> Iterator[Finding]:
    """Finds totals of a snapshot's summary that differ from those of its entries. Totals that the summary leaves out
    are not missed: a writer must, if the parent's are unknown."""
    summary = snapshot.summary
    yield from (
        _compared(snapshot, key, count) for key, count in counts.live.items() if _differs(summary.get(key), count)
    )
    if "total-data-files" not in summary:
        return  # of a writer that counted otherwise, or not at all
    changes = dict(counts.added.get(snapshot.snapshot_id, _no_changes(True)))
    if _DUPLICATES not in summary:
        changes |= counts.removed.get(snapshot.snapshot_id, _no_changes(False))
    yield from (
        _compared(snapshot, key, count) for key, count in changes.items() if _differs(summary.get(key, "0"), count)
    )


def _no_changes(added: bool) -> Counter[str]:
    return Counter(_changes((), added))


def _differs(recorded: str | None, count: int) -> bool:
    if recorded is None:
        return False
    try:
        return int(recorded) != count
    except ValueError:
        return True


def _compared(snapshot: Snapshot, key: str, count: int) -> Finding:
    return found.WrongSummary(snapshot.snapshot_id, key, snapshot.summary.get(key), count)


def _totals(live: Sequence[DataFile]) -> dict[str, int]:
    return {
        "total-data-files": sum(file.is_data for file in live),
        "total-records": _records(live, DataFileContent.DATA),
        "total-delete-files": sum(not file.is_data for file in live),
        "total-position-deletes": _records(live, DataFileContent.POSITION_DELETES),
        "total-equality-deletes": _records(live, DataFileContent.EQUALITY_DELETES),
        "total-files-size": sum(map(_size, live)),
    }


def _changes(files: Sequence[DataFile], added: bool) -> dict[str, int]:
    change, change_data = ("added", "added") if added else ("removed", "deleted")
    positions = [file for file in files if file.content is DataFileContent.POSITION_DELETES]
    vectors = sum(file.is_deletion_vector for file in positions)
    return {
        f"{change_data}-data-files": sum(file.is_data for file in files),
        f"{change_data}-records": _records(files, DataFileContent.DATA),
        f"{change}-delete-files": sum(not file.is_data for file in files),
        f"{change}-position-delete-files": len(positions) - vectors,
        f"{change}-dvs": vectors,
        f"{change}-equality-delete-files": sum(file.content is DataFileContent.EQUALITY_DELETES for file in files),
        f"{change}-position-deletes": _records(files, DataFileContent.POSITION_DELETES),
        f"{change}-equality-deletes": _records(files, DataFileContent.EQUALITY_DELETES),
        f"{change}-files-size": sum(map(_size, files)),
    }


def _records(files: Sequence[DataFile], content: DataFileContent) -> int:
    return sum(file.record_count for file in files if file.content is content)


def _size(file: DataFile) -> int:
    """A deletion vector counts with its blob, as several share a file."""
    return (file.content_size_in_bytes or 0) if file.is_deletion_vector else file.file_size_in_bytes
