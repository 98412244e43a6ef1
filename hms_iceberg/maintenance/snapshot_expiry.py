"""An expiry of snapshots step by step, by PyIceberg's names."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from hms_iceberg.maintenance.expire_with_files import ExpiryResult, expire_snapshots
from hms_iceberg.table.changes.manage_snapshots import Time
from hms_iceberg.table.table import Table


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
        """Whether files that no snapshot needs any more are deleted, as they are by default."""
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
