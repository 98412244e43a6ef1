"""What became of a commit: made, lost, or unknown. It is decided here, and only here its files are deleted.

What the metastore says of an attempt is not enough: a server may tell of its own success as a conflict. So an attempt
that is not known to be lost is looked for in the history of the newest version.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
    wait_random_exponential,
)

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
from hms_iceberg.spec.table_properties import (
    COMMIT_MAX_RETRY_WAIT_MS,
    COMMIT_MIN_RETRY_WAIT_MS,
    COMMIT_NUM_RETRIES,
    COMMIT_TOTAL_RETRY_TIME_MS,
    STATUS_CHECK_MAX_WAIT_MS,
    STATUS_CHECK_MIN_WAIT_MS,
    STATUS_CHECK_NUM_RETRIES,
    STATUS_CHECK_TOTAL_TIMEOUT_MS,
)
from hms_iceberg.transaction.workspace import FileWorkspace

logger = logging.getLogger(__name__)
_V = TypeVar("_V", MetadataVersion, ViewMetadataVersion, contravariant=True)


class Outcome(Enum):
    """The outcome of a commit.

    Attributes:
        MADE: it is part of the table.
        LOST: it is not, and never will be; its files are deleted.
        UNKNOWN: nobody can tell; no file is deleted.
    """

    MADE = "made"
    LOST = "lost"
    UNKNOWN = "unknown"


class Pointers(Protocol[_V]):
    """The calls to a metastore that tables and views have in common."""

    def load(self, identifier: Identifier) -> TablePointer:
        """The current pointer."""
        ...

    def shows(self, location: str, new: _V) -> bool:
        """Whether the metadata file at a location is that of `new`.

        Args:
            location: location of the metadata file.
            new: the version.
        """
        ...


@dataclass(frozen=True)
class Newest(Generic[V]):
    """The newest version of a name, as somebody has just seen it.

    Attributes:
        location: of its metadata file.
        read: reads it, if it is needed.
        before: what the metastore's row names as the one before; empty if it names none.
    """

    location: str
    read: Callable[[str], V]
    before: str = ""

    @classmethod
    def at(cls, pointer: TablePointer, read: Callable[[str], V]) -> Newest[V]:
        """Loads the version that a row points at.

        Args:
            pointer: the row.
            read: reads the version at a location.
        """
        return cls(
            pointer.metadata_location, lru_cache(1)(read), pointer.properties.get("previous_metadata_location", "")
        )

    @property
    def version(self) -> V:
        """The newest version."""
        return self.read(self.location)

    def history(self) -> tuple[str, ...]:
        """Locations of metadata files, oldest first, as far as they are known; its own is the last."""
        return (*filter(None, self.version.previous or (self.before,)), self.location)


@dataclass(frozen=True)
class Made(Generic[V]):
    """A commit that was made.

    Attributes:
        version: the newest version known, which is the commit's own, or has it in its history.
        used: the files created that it uses.
        base: the version that it replaced; None if none was, or if that was found out later.
    """

    version: V
    used: frozenset[str]
    base: V | None = None


@dataclass(frozen=True, eq=False)
class _Attempt(Generic[V]):
    """A swap that was asked for.

    Attributes:
        base, new: its versions.
        used: the files created that `new` uses.
        looks: how often to look what became of it. It is read from the properties before anything is sent.
        is_refused: the metastore said that it was not made, and so it is not under way any more.
        refuses_late: the metastore refuses it once another version has taken the base's place; see `Lease`.
    """

    base: V | None
    new: V
    used: frozenset[str]
    looks: Retrying
    is_refused: bool = False
    refuses_late: bool = False

    def outcome(self, newest: Newest[V] | None, shows: Callable[[str, V], bool]) -> Outcome:
        """The outcome, as the newest version shows it; None if there is no such name."""
        unless_pending = Outcome.LOST if self.is_refused else Outcome.UNKNOWN
        if newest is None:
            # It may have been made, and renamed since; but a create is refused for a name of another kind as well.
            return unless_pending if self.base is None else Outcome.UNKNOWN
        if shows(newest.location, self.new):
            return Outcome.MADE
        if self.base is not None and newest.location == self.base.location:
            return unless_pending
        version, history = newest.version, newest.history()
        follows_base = self.base is None or self.base.location in history
        after = history if self.base is None or not follows_base else history[history.index(self.base.location) + 1 :]
        # One metadata file follows another only once.
        if self.new.location in after or (follows_base and shows(after[0], self.new)):
            # The log of a file that somebody registered may name another that was there before.
            return Outcome.MADE if self.new.location in self.used else Outcome.UNKNOWN
        if self.base is None:
            # A create that is under way is made when the name is free again.
            return Outcome.UNKNOWN if version.uuid == self.new.uuid else unless_pending
        drawn = self.new.snapshot_ids - self.base.snapshot_ids
        # A REST server gives the metadata file a name of its own.
        is_drawn_here = not follows_base or self.new.location in self.used
        if is_drawn_here and version.uuid == self.new.uuid and drawn & version.snapshot_ids:
            return Outcome.MADE
        if follows_base:
            return Outcome.LOST if self.refuses_late else unless_pending
        return Outcome.UNKNOWN


class Commit(Generic[V]):
    """One commit, over all its attempts.

    Attributes:
        read: reads a metadata file.
        workspace: the files that are written for it.

    Args:
        named: what is changed, for messages: `table db.events`.
        identifier: its name.
        metastore: where its pointer is.
        read, workspace: as above.
    """

    def __init__(
        self,
        named: str,
        identifier: Identifier,
        metastore: Pointers[V],
        read: Callable[[str], V],
        workspace: FileWorkspace,
    ) -> None:
        self._named = named
        self._identifier = identifier
        self._metastore: Pointers[V] = metastore
        self.read: Callable[[str], V] = read
        self.workspace = workspace
        self._open: list[_Attempt[V]] = []
        self._made: Made[V] | None = None
        self._has_ended = False

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, as far as it is known; None before the first attempt."""
        if self._made is not None:
            return Outcome.MADE
        if self._open:
            return Outcome.UNKNOWN
        return Outcome.LOST if self._has_ended else None

    # ------------------------------------------------------------------------------------------ attempts

    def run(self, attempts: Callable[[], object]) -> Made[V]:
        """Makes the attempts, determines their outcome, and deletes the files that are not used.

        Args:
            attempts: makes them, by `swap`; returns once one was made, raises if none was.

        Raises:
            CommitStateUnknownError: nobody can tell; no file was deleted.
            BaseException: what `attempts` raises. Files stay if it is not certain that nothing was made.
        """
        try:
            attempts()
            assert self._made is not None
        except Exception as error:
            self._find_out(error)
            if self._made is None:
                self._end()
                raise
            logger.warning("The commit to %s was made, although it ended in an error: %s", self._named, error)
        except BaseException:  # whoever interrupts does not wait for a metastore
            self._end()
            raise
        self._end()
        return self._made

    def swap(self, lease: Lease[V], base: V | None, new: V) -> None:
        """Asks the metastore once to swap in the new version; returns if that was done.

        Args:
            lease: the lease of the metastore.
            base: the version that has to be current still; None to create it.
            new: the new version.

        Raises:
            CommitStateUnknownError: nobody can tell; says how to find out.
            ConfigurationError: a property `commit.status-check.*` is not a number; nothing was sent.
            IcebergError: it was not made; see `Lease.swap`.
        """
        attempt = _Attempt(base, new, self.workspace.used(), status_policy(new.metadata.properties))
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
        """Ends the commit before its first attempt."""
        self._end()

    # ------------------------------------------------------------------------------------------ outcomes

    def _found(self, attempt: _Attempt[V], newest: Newest[V]) -> Made[V]:
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

    def _find_out(self, error: Exception) -> None:
        """The last look before files are deleted.

        Raises:
            CommitStateUnknownError: an attempt may have been made, or may still be.
        """
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

    def _unknown(self, attempt: _Attempt[V], error: Exception) -> CommitStateUnknownError:
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


# A conflict means that another writer got through, and a late one does not get through any better than a prompt one:
# with waits that double, one that lost ten times would sit there for a minute while the others go on.
_GROWTH = 1.3


def commit_policy(
    properties: Mapping[str, str], retries_without_waiting: Callable[[int], bool] = lambda attempt: False
) -> Retrying:
    """Retries retryable errors with growing, jittered waits; the last error is raised unchanged.

    Args:
        properties: the table's.
        retries_without_waiting: whether no wait follows the attempt of this number, counted from 1.
    """
    jittered = wait_random_exponential(
        multiplier=COMMIT_MIN_RETRY_WAIT_MS.of(properties) / 1000,
        max=COMMIT_MAX_RETRY_WAIT_MS.of(properties) / 1000,
        exp_base=_GROWTH,
    )
    return Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, IcebergError) and error.retryable),
        stop=stop_after_attempt(1 + max(0, COMMIT_NUM_RETRIES.of(properties)))
        | stop_after_delay(COMMIT_TOTAL_RETRY_TIME_MS.of(properties) / 1000),
        wait=lambda state: 0.0 if retries_without_waiting(state.attempt_number) else jittered(state),
        reraise=True,
    )


def status_policy(properties: Mapping[str, str]) -> Retrying:
    """Repeats a look at the table until it says yes or no; None if the tries are used up."""
    return Retrying(
        retry=retry_if_result(lambda found: found is None) | retry_if_exception_type(Exception),
        stop=stop_after_attempt(1 + max(0, STATUS_CHECK_NUM_RETRIES.of(properties)))
        | stop_after_delay(STATUS_CHECK_TOTAL_TIMEOUT_MS.of(properties) / 1000),
        wait=wait_exponential(
            multiplier=STATUS_CHECK_MIN_WAIT_MS.of(properties) / 1000,
            max=STATUS_CHECK_MAX_WAIT_MS.of(properties) / 1000,
        ),
        retry_error_callback=_unknown,
    )


def _unknown(state: RetryCallState) -> None:
    """The result if every check failed: unknown."""


# How long a version counts as the current one.
VERIFIED_SECONDS = 1.0


class Approach(Enum):
    """How an attempt begins: which version it builds on, and when it takes the lock.

    Attributes:
        TRUST: the version at hand is changed as it is, since it was the current one a moment ago.
        LOOK: the newest version is loaded, and the lock taken when it comes to the swap.
        LOCK: the lock is taken, then the newest version loaded, so that nobody else can be first.
    """

    TRUST = "trust"
    LOOK = "look"
    LOCK = "lock"


@dataclass(frozen=True)
class Eagerness:
    """The approaches of one commit's attempts.

    Attributes:
        first: that of the first attempt; all others take the lock.
    """

    first: Approach = Approach.LOOK

    @classmethod
    def of(cls, first: Approach, properties: Mapping[str, str]) -> Eagerness:
        """The approaches of a commit to a table with these properties; without retries, the first takes the lock.

        Args:
            first: the approach of the first attempt.
            properties: the table's properties.
        """
        return cls(first if COMMIT_NUM_RETRIES.of(properties) > 0 else Approach.LOCK)

    def approach(self, attempt: int) -> Approach:
        """How an attempt begins, counted from 1."""
        return self.first if attempt == 1 else Approach.LOCK

    def retries_without_waiting(self, attempt: int) -> bool:
        """Whether an attempt that was lost says nothing of other writers, so that the next one need not wait."""
        return self.approach(attempt) is Approach.TRUST


@dataclass(frozen=True)
class Freshness:
    """When a version was last known to be current, and whether others commit to the table as well.

    Attributes:
        seen_at: when it was the current one (`time.monotonic`).
        is_contended: whether somebody else committed between the last two commits made from here.
    """

    seen_at: float = field(default_factory=time.monotonic)
    is_contended: bool = False

    @classmethod
    def of(cls, seen_at: float | None) -> Freshness:
        """The freshness of a version that was current at a time (`time.monotonic`), or at an unknown time (None)."""
        return cls(-math.inf if seen_at is None else seen_at)

    def renewed(self) -> Freshness:
        """Notes that the version was found to be the current one just now."""
        return Freshness(is_contended=self.is_contended)

    def first_approach(self) -> Approach:
        """How a commit from here begins."""
        if self.is_contended:
            return Approach.LOCK
        return Approach.TRUST if time.monotonic() - self.seen_at < VERIFIED_SECONDS else Approach.LOOK
