"""The attempts of one commit: the swaps that were asked for, their outcome, and the files that may be deleted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from hms_iceberg.errors import (
    AlreadyExistsError,
    CommitFailedError,
    CommitStateUnknownError,
    IcebergError,
    NotAnIcebergTableError,
    NotFoundError,
    StaleBaseError,
)
from hms_iceberg.metastore import Identifier, Lease, MetadataVersion, TablePointer, V, ViewMetadataVersion
from hms_iceberg.transaction.outcome import Attempt, Newest, Outcome
from hms_iceberg.transaction.retry import status_policy
from hms_iceberg.transaction.workspace import FileWorkspace

logger = logging.getLogger(__name__)
_V = TypeVar("_V", MetadataVersion, ViewMetadataVersion, contravariant=True)


class Pointers(Protocol[_V]):
    """The calls to a metastore that tables and views have in common."""

    def load(self, identifier: Identifier) -> TablePointer: ...

    def shows(self, location: str, new: _V) -> bool:
        """Whether the metadata file at a location is that of `new`."""
        ...


@dataclass(frozen=True)
class Made(Generic[V]):
    """A commit that was made."""

    version: V  # the newest version known, which is the commit's own, or has it in its history
    used: frozenset[str]  # the files created that it uses
    base: V | None = None  # the version that it replaced; None if none was, or if that was found out later


class Commit(Generic[V]):
    """A context of the attempts to commit; at its end their outcome is decided, and unused files are deleted. Its error
    is raised on unless an attempt was made; if nobody can tell, CommitStateUnknownError keeps all files."""

    def __init__(
        self,
        named: str,
        identifier: Identifier,
        metastore: Pointers[V],
        read: Callable[[str], V],
        workspace: FileWorkspace,
    ) -> None:
        """Asks nothing yet; `named` is for messages: `table db.events`."""
        self._named = named
        self._identifier = identifier
        self._metastore: Pointers[V] = metastore
        self.read: Callable[[str], V] = read
        self.workspace = workspace
        self._open: list[Attempt[V]] = []
        self._made: Made[V] | None = None
        self._has_ended = False

    def __enter__(self) -> Commit[V]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, Exception):  # whoever interrupts does not wait for a metastore
            self._decide(error)
        self._end()
        if error is None or self._made is None or not isinstance(error, Exception):
            return False
        logger.warning("The commit to %s was made, although it ended in an error: %s", self._named, error)
        return True

    @property
    def made(self) -> Made[V]:
        """The commit as it was made, once its context has ended."""
        assert self._made is not None
        return self._made

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, as far as it is known; None before the first attempt."""
        if self._made is not None:
            return Outcome.MADE
        if self._open:
            return Outcome.UNKNOWN
        return Outcome.LOST if self._has_ended else None

    # ------------------------------------------------------------------------------------------ attempts

    def swap(self, lease: Lease[V], base: V | None, new: V) -> None:
        """Asks the metastore once to swap in the new version; returns if that was done, and raises as `Lease.swap`."""
        attempt = Attempt(base, new, self.workspace.used(), status_policy(new.metadata.properties))
        self._open.append(attempt)
        try:
            stored = lease.swap(base, new)
        except CommitStateUnknownError as error:
            self._open[-1] = attempt = replace(attempt, refuses_late=lease.refuses_late)
            self._look_until_known()
            if attempt in self._open:
                raise self._unknown(attempt, error) from error
            if self._made is None:
                raise CommitFailedError(
                    f"Cannot commit to {self._named}: another commit was first. Replay the change on the newer version."
                ) from error
        except StaleBaseError:
            self._open.remove(attempt)  # it was never under way
            raise
        except (CommitFailedError, AlreadyExistsError) as error:
            self._open[-1] = replace(attempt, is_refused=True)
            # A server that repeats a create by itself reports our own row as somebody else's.
            if isinstance(error, CommitFailedError) or not self._look_until_known():
                raise
        except IcebergError:
            self._open.remove(attempt)  # it was never under way
            raise
        else:
            is_moved = stored is not None and stored.location != new.location
            used = attempt.used - {new.location} if is_moved else attempt.used
            self._made = Made(stored or new, used, base)

    def leave(self, base: V) -> None:
        """Ends the commit without a change."""
        self._made = Made(base, self.workspace.used())

    def is_made(self, newest: Newest[V] | None) -> bool:
        """Whether an attempt that was told as lost was made after all, as the newest version tells."""
        for attempt in tuple(self._open):
            outcome = attempt.outcome(newest, self._metastore.shows)
            if outcome is Outcome.LOST:
                self._open.remove(attempt)
            elif outcome is Outcome.MADE and newest is not None:
                self._made = self._found(attempt, newest)
                return True
        return False

    def give_up(self) -> None:
        """Ends a commit without an attempt."""
        self._end()

    # ------------------------------------------------------------------------------------------ outcomes

    def _found(self, attempt: Attempt[V], newest: Newest[V]) -> Made[V]:
        if newest.location == attempt.new.location:
            return Made(attempt.new, attempt.used)
        # Which of several has the snapshot need not be told: the files of all that are open are kept.
        return Made(newest.version, frozenset().union(*(each.used for each in self._open)))

    def _look(self) -> bool | None:
        """Whether it was made; None if another look may tell, False if none will."""
        try:
            if self.is_made(Newest.at(self._metastore.load(self._identifier), self.read)):
                return True
        except NotAnIcebergTableError:
            # The name is somebody else's, and was when a create was refused.
            self._open = [each for each in self._open if each.base is not None or not each.is_refused]
        except NotFoundError:
            self.is_made(None)
        return None if any(not each.is_refused for each in self._open) else False

    def _look_until_known(self) -> bool | None:
        """Looks at the table as often as `commit.status-check.*` allows; None also if no look got an answer. See
        `_look`."""
        return self._open[-1].looks(self._look)

    def _decide(self, error: Exception) -> None:
        """The last look before files are deleted; raises if an attempt may have been made, or may still be."""
        if self._made is not None or not self._open or isinstance(error, CommitStateUnknownError):
            return
        if self._look_until_known() is None:
            raise self._unknown(self._open[-1], error) from error
        if self._open and self._made is None:
            logger.warning(
                "The metastore says that no attempt to commit to %s was successful, and the table's history does not "
                "prove it; its files stay where they are and can be removed as orphan files later: %s",
                self._named,
                error,
            )

    def _end(self) -> None:
        self._has_ended = True
        if self._made is not None:
            self.workspace.clean_up(committed=self._made.used)
        elif not self._open:
            self.workspace.clean_up(committed=None)

    def _unknown(self, attempt: Attempt[V], error: Exception) -> CommitStateUnknownError:
        new = attempt.new
        look = f"the metadata location {new.location}"
        if isinstance(new, MetadataVersion):
            look += " (as current, or in the metadata log)"
        drawn = sorted(new.snapshot_ids - (attempt.base.snapshot_ids if attempt.base else frozenset()))
        if drawn:
            look += f" or the snapshot id {', '.join(map(str, drawn))}"
        why = str(error) if isinstance(error, IcebergError) else f"{type(error).__name__}: {error}."
        return CommitStateUnknownError(
            f"Cannot tell whether the commit to {self._named} was made: {why} No file was deleted. To find out, load "
            f"{self._named} again and look for {look}: if it is there, the commit was made; if it is not, and the "
            "metastore has no request of this client pending, it was not, and may be repeated."
        )
