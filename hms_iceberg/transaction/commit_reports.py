"""Reports of commits, for those who listen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from hms_iceberg.errors import AlreadyExistsError, CommitConflictError, CommitFailedError, CommitStateUnknownError
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.reports import CONFLICT, FAILED, MADE, UNKNOWN, CommitReport, tell


class AttemptedCommit:
    """A commit that is under way, as a context manager; it reports one that ends in an error."""

    def __init__(self, table: str, start: MetadataVersion | None, attempts: Callable[[], int]) -> None:
        self._table = table
        self._known = frozenset() if start is None else start.snapshot_ids
        self._attempts = attempts
        self._started = time.monotonic()
        self._lock_seconds = 0.0

    def __enter__(self) -> AttemptedCommit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            tell(lambda: self._not_made(error))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Counts the time within the context as a wait for the table's lock."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._lock_seconds += time.monotonic() - started

    def made(self, version: MetadataVersion) -> None:
        tell(lambda: self._made(version))

    def _not_made(self, error: BaseException) -> CommitReport:
        outcome = FAILED
        if isinstance(error, CommitStateUnknownError):
            outcome = UNKNOWN
        elif isinstance(error, (CommitConflictError, CommitFailedError, AlreadyExistsError)):
            outcome = CONFLICT
        said = f"{type(error).__name__}: {error}"
        return CommitReport(self._table, outcome, self._attempts(), self._seconds(), self._lock_seconds, error=said)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _made(self, version: MetadataVersion) -> CommitReport:
        metadata = version.metadata
        new = [each for each in metadata.snapshots if each.snapshot_id not in self._known]
        snapshot = max(new, key=lambda each: each.sequence_number, default=None)
        summary = snapshot.summary if snapshot else None
        return CommitReport(
            table=self._table,
            outcome=MADE,
            attempts=self._attempts(),
            seconds=self._seconds(),
            lock_seconds=self._lock_seconds,
            table_uuid=str(metadata.table_uuid),
            location=version.location,
            snapshot_id=snapshot.snapshot_id if snapshot else None,
            sequence_number=snapshot.sequence_number if snapshot else None,
            operation=str(getattr(summary.operation, "value", summary.operation)) if summary else None,
            summary=dict(summary) if summary else {},
            schema=metadata.schema(),
        )
