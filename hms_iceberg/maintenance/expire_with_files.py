"""Expiring snapshots and deleting the files that only they need; and the builder of an expiry."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import MetadataVersion, TableRows
from hms_iceberg.storage import Places
from hms_iceberg.table.changes.manage_snapshots import Time
from hms_iceberg.table.needed_files.named_files import delete_files
from hms_iceberg.table.needed_files.needed_by_others import needed_by_others, table_rows_of
from hms_iceberg.table.needed_files.remembered_rows import fresh_rows
from hms_iceberg.table.reading.scan import milliseconds
from hms_iceberg.table.table import Table
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots, UnreachableFiles, unreachable_files

logger = logging.getLogger(__name__)

MANY_SNAPSHOTS = 10_000
"""From so many snapshots on, their metadata is a cost of every commit."""
_SECONDS_OF_SNAPSHOT, _BYTES_OF_SNAPSHOT = 0.00007, 9_000  # of an append to a table of 70,000


def cost_of_snapshots(count: int) -> str | None:
    """The cost of so many snapshots, for people; None if it does not matter."""
    if count < MANY_SNAPSHOTS:
        return None
    seconds, size = count * _SECONDS_OF_SNAPSHOT, count * _BYTES_OF_SNAPSHOT // 1_000_000
    return (
        f"{count} snapshots are read and written by every commit, which takes about {seconds:.1f} s of processor and "
        f"{size} MB of memory"
    )


@dataclass(frozen=True)
class ExpiryResult:
    """The result of an expiry.

    Attributes:
        snapshot_ids: the snapshots that went.
        files: the files that no snapshot needs any more, by kind.
        deleted: how many of them were deleted; none in a dry run.
        left: those that could not be deleted, by location with the reason. They are orphans.
        kept: those that others need, by location with who does: the original Hive table of a migration, or a copy of
            the table. They become orphans when these are gone.
    """

    snapshot_ids: tuple[int, ...]
    files: UnreachableFiles
    deleted: int
    left: dict[str, str]
    kept: dict[str, str]


def expire_snapshots(
    table: Table,
    *,
    older_than: Time | None = None,
    retain_last: int | None = None,
    snapshot_ids: Iterable[int] = (),
    dry_run: bool = False,
    clean_expired_files: bool = True,
    clean_expired_metadata: bool = False,
    keep_backup: bool = True,
    rows: TableRows | None = None,
) -> ExpiryResult:
    """Removes old snapshots from a table, and deletes the files that only they needed.

    Files are deleted after the commit is certain, and only what no snapshot of the table as it then is can reach (of
    no branch, no tag, and no staged snapshot), what no table names that was registered from the same metadata, and,
    while a migrated table has its Hive table as the way back, what that needs. If the outcome of the commit is unknown,
    or a manifest that is still needed cannot be read, nothing is deleted. Snapshots that were expired without deleting
    their files leave orphans, which this does not look for.

    Args:
        table: the table, which moves to the version without the snapshots.
        older_than: snapshots before this time go; by default those older than the table's
            `history.expire.max-snapshot-age-ms`.
        retain_last: how many snapshots every branch keeps whatever their age; by default the table's
            `history.expire.min-snapshots-to-keep`.
        snapshot_ids: further snapshots to remove, which no branch or tag points at.
        dry_run: only tell what would go.
        clean_expired_files: whether files are deleted; those that are left out are told, and stay as orphans.
        clean_expired_metadata: also removes partition specs and schemas that no snapshot refers to any more.
        keep_backup: whether the files stay that the original Hive table of a migration needs; without them there is no
            way back.
        rows: the metastore's tables, if they are not to be asked for anew to tell what would go.

    Returns:
        the snapshots that went; how many files were deleted, which are left, and which stay for others. With `dry_run`,
        what would go.

    Raises:
        UnsupportedError: the table's property `gc.enabled` is false: its files may belong to others.
        NoSuchSnapshotError, InvalidInputError: a snapshot given by its id is not there, or a branch or tag needs it;
            `retain_last` is less than 1.
        CommitStateUnknownError: nobody can tell whether the snapshots went; no file was deleted.
        NoSuchTableError: the table was dropped or renamed, perhaps after its snapshots went; no file was deleted.
        CommitFailedError: other writers were first in every attempt; nothing was changed.
        CorruptFileError, StorageError: the snapshots went, and what is still needed, by this table or a copy of it,
            could not be told; no file was deleted.
    """
    if retain_last is not None and retain_last < 1:
        raise InvalidInputError(f"Number of snapshots to retain must be at least 1, cannot be: {retain_last}")
    time_ms = None if older_than is None else milliseconds(older_than)
    update = ExpireSnapshots(time_ms, retain_last, frozenset(snapshot_ids), clean_metadata=clean_expired_metadata)
    before = table.refresh().metadata
    transaction = table.transaction()
    transaction.add(update)
    if dry_run:
        after = transaction.metadata
        transaction.abandon()
    else:
        transaction.commit_transaction()
        after = table.refresh().metadata  # whoever committed meanwhile may need files again
    left_over = after.snapshots_by_id.keys()
    expired = tuple(each.snapshot_id for each in before.snapshots if each.snapshot_id not in left_over)
    places = Places(table.storage)
    files = unreachable_files(before, after, table.storage, places.anywhere)
    rows = rows or table_rows_of(table.metastore)
    if not dry_run:
        rows = fresh_rows(rows)
    version = MetadataVersion(table.metadata_location, after)
    kept = needed_by_others(table.identifier, version, files.all(), table.storage, rows, keep_backup=keep_backup)
    current = places.anywhere(table.metadata_location)  # a snapshot may name anything as its own
    doomed = [each for each in files.all() if each not in kept and places.anywhere(each) != current]
    doomed = doomed if clean_expired_files and not dry_run else []
    name = ".".join(table.name())
    left = delete_files(table.storage, doomed, name)
    deleted = len(doomed) - len(left)
    logger.info("Expired %d snapshots of %s; deleted %d files, kept %d", len(expired), name, deleted, len(kept))
    return ExpiryResult(expired, files, deleted, left, kept)


class SnapshotExpiry:
    """Which snapshots are to go. As a context manager it commits at the end, unless there was an error.

    >>> table.maintenance.expire_snapshots().older_than(dt.datetime(2026, 1, 1)).retain_last(10).commit()
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._older_than: Time | None = None
        self._retain_last: int | None = None
        self._ids: frozenset[int] = frozenset()
        self._clean = True

    def __enter__(self) -> SnapshotExpiry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()

    def older_than(self, dt: Time) -> SnapshotExpiry:
        """Expires snapshots older than this; by default than the table's `history.expire.max-snapshot-age-ms`."""
        self._older_than = dt
        return self

    def retain_last(self, count: int) -> SnapshotExpiry:
        """Keeps so many snapshots of every branch, whatever their age."""
        self._retain_last = count
        return self

    def by_id(self, snapshot_id: int) -> SnapshotExpiry:
        """Expires a snapshot that no branch or tag points at."""
        return self.by_ids([snapshot_id])

    def by_ids(self, snapshot_ids: Iterable[int]) -> SnapshotExpiry:
        """Expires snapshots that no branch or tag points at."""
        self._ids |= frozenset(snapshot_ids)
        return self

    def clean_expired_files(self, clean: bool = True) -> SnapshotExpiry:
        """Sets whether files that no snapshot needs any more are deleted, as they are by default."""
        self._clean = clean
        return self

    def dry_run(self) -> ExpiryResult:
        """Lists what `commit` would remove; changes nothing."""
        return self._run(dry_run=True)

    def commit(self) -> ExpiryResult:
        """Removes the snapshots, then the files; raises as `hms_iceberg.maintenance.expire_with_files` does."""
        return self._run()

    def _run(self, dry_run: bool = False) -> ExpiryResult:
        return expire_snapshots(
            self._table,
            older_than=self._older_than,
            retain_last=self._retain_last,
            snapshot_ids=self._ids,
            dry_run=dry_run,
            clean_expired_files=self._clean,
        )
