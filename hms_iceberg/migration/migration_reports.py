"""Events of migrations, for those who listen."""

from __future__ import annotations

import time
from types import TracebackType

from hms_iceberg.reports import FAILED, MADE, MigrationReport, tell_event


class ReportedMigration:
    """A migration, or a round of a follower, that is under way, as a context manager; it reports one that fails."""

    def __init__(self, table: str, method: str) -> None:
        self._table = table
        self._method = method
        self._started = time.monotonic()

    def __enter__(self) -> ReportedMigration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            said = f"{type(error).__name__}: {error}"
            tell_event(lambda: MigrationReport(self._table, self._method, FAILED, self._seconds(), error=said))

    def made(self, files: int, records: int = 0, size: int = 0) -> None:
        """Reports what was taken over."""
        tell_event(lambda: MigrationReport(self._table, self._method, MADE, self._seconds(), files, records, size))

    def _seconds(self) -> float:
        return time.monotonic() - self._started
