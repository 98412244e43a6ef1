"""The base of the builders of single changes, which collect steps and commit at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.machinery.update import Update

Self = TypeVar("Self", bound="PendingChange")


@dataclass(frozen=True)
class StartedChange:
    """The transaction that a started change belongs to. `finish` commits it; None if the transaction has more than this
    change, and is committed by its owner."""

    transaction: Transaction
    finish: Callable[[], object] | None = None

    def end(self) -> None:
        """Commits the transaction if the change was begun on the table itself; called when the change is complete."""
        if self.finish is not None:
            self.finish()


class PendingChange:
    """A change of a table that collects steps.

    `commit()` hands the change to its transaction, and commits that too if the change was begun on the table itself. As
    a context manager it does so at the end, unless there was an error.
    """

    def __init__(self, started: StartedChange) -> None:
        self._transaction = started.transaction
        self._started = started

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()

    @property
    def _metadata(self) -> TableMetadata:
        """The table as the transaction would leave it without this change."""
        return self._transaction.metadata

    def _preview(self, update: Update) -> TableMetadata:
        """The metadata after the change; raises if it cannot be made."""
        return self._transaction.applied(update, self._metadata)

    def _updates(self) -> list[Update]:
        raise NotImplementedError

    def commit(self) -> None:
        """Makes the change part of its transaction, or of the table if there is none.

        Raises:
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `Transaction.commit`.
        """
        for update in self._updates():
            self._transaction.add(update)
        self._started.end()
