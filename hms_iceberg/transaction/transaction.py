"""A transaction: pending updates, and the attempts to make them part of a table."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tenacity import RetryCallState, Retrying

from hms_iceberg.errors import (
    CatalogError,
    CommitConflictError,
    CommitFailedError,
    IcebergError,
    InvalidInputError,
    MissingFileError,
    NoSuchTableError,
    NotAnIcebergTableError,
    StaleBaseError,
    TableAlreadyExistsError,
    UnknownColumnError,
)
from hms_iceberg.metastore import Identifier, Lease, MetadataVersion, Metastore, ShowsColumns, TablePointer
from hms_iceberg.spec.metadata.metadata_json import is_never_reused
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.commit import Commit
from hms_iceberg.transaction.commit_reports import AttemptedCommit
from hms_iceberg.transaction.outcome import Newest, Outcome
from hms_iceberg.transaction.retry import Approach, Eagerness, commit_policy
from hms_iceberg.transaction.workspace import (
    FileWorkspace,
    check_new_ids,
    check_same_ids,
    delete_dropped_versions,
    read_current,
    read_version,
    refuse_previewed,
    write_version,
)
from hms_iceberg.updates.conditional_changes import RequireUnchanged
from hms_iceberg.updates.machinery.conflicts import (
    check_added_nulls,
    check_nulls_added_since,
    check_same_history,
)
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.snapshots.snapshot_refs import FastForward

logger = logging.getLogger(__name__)


class Transaction:
    """Collects updates and commits them as one new version of a table.

    The first attempt may be optimistic. After a conflict the next takes the table's lock first, then loads, replays and
    swaps under it, so that it can lose to nobody. All attempts share one lease of the metastore.
    """

    def __init__(
        self,
        identifier: Identifier,
        origin: Origin,
        metastore: Metastore,
        storage: Storage,
        *,
        first: Approach = Approach.LOOK,
    ) -> None:
        """Begins a transaction; `first` is `TRUST` if the origin's version was the current one a moment ago."""
        if origin.start is not None:
            refuse_previewed(origin.start.metadata, ".".join(identifier))
        self.identifier = identifier
        self.origin = origin
        self.workspace = FileWorkspace(storage)
        self.attempts = 0
        self._metastore = metastore
        self._updates: list[Update] = []
        self._initial = self._preview = origin.metadata_on(origin.start, identifier)
        self._previewed = 0
        self._commit = Commit(f"table {self._name}", identifier, metastore, self._read, self.workspace)
        self._check_columns(origin.start, self._initial)
        self._finished = False
        self._exists = origin.start is not None
        self._eagerness = Eagerness.of(first, self._initial.properties)

    # ------------------------------------------------------------------------------------------ collecting

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the commit; None before it. Only a lost commit leaves files that may be deleted."""
        return self._commit.outcome

    @property
    def updates(self) -> tuple[Update, ...]:
        """The pending updates, in order."""
        return tuple(self._updates)

    @property
    def metadata(self) -> TableMetadata:
        """The table as the pending updates would leave it, on the version that the transaction was begun on."""
        while self._previewed < len(self._updates):
            self._preview = self.applied(self._updates[self._previewed], self._preview)
            self._previewed += 1
        return self._preview

    def applied(self, update: Update, base: TableMetadata) -> TableMetadata:
        """The metadata after an update, which is not added; raises if it cannot be made."""
        with self._naming(base):
            return update.apply(base, self.workspace)

    def add(self, update: Update, *, preview: bool = True) -> None:
        """Adds a pending update; with `preview` it is applied at once, so that one that cannot be made fails at this
        call.
        """
        self._refuse_if_finished()
        if preview:
            before = self.metadata
            after = self.applied(update, before)
            self._check_columns(self.origin.start, after)
            self._preview = after
            self._previewed += 1
        self._updates.append(update)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Takes back the updates that a failed block has added, and deletes the files that were written for them."""
        updates, preview, previewed = list(self._updates), self._preview, self._previewed
        try:
            with self.workspace.all_or_nothing():
                yield
        except BaseException:
            self._updates, self._preview, self._previewed = updates, preview, previewed
            raise

    def track(self, location: str) -> None:
        """Notes a data file that was written for this transaction: a certain failure deletes it."""
        self.workspace.track(location)

    def abandon(self) -> None:
        """Gives the transaction up and deletes every file that was written for it."""
        if not self._finished:
            self._finished = True
            self._commit.give_up()

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise InvalidInputError(
                f"The transaction on table {self._name} was committed or given up already. Begin a new one."
            )

    @property
    def _name(self) -> str:
        return ".".join(self.identifier)

    @contextmanager
    def _naming(self, metadata: TableMetadata) -> Iterator[None]:
        """Has errors name the table: updates know its location only, which is all the name that some tables have."""
        try:
            yield
        except IcebergError as error:
            place = re.compile(rf"\b([Tt])he table at {re.escape(metadata.location)}(?=[.:;,]?(\s|$))")
            if len(self.identifier) == 1 or not place.search(str(error)):
                raise
            message = place.sub(lambda found: f"{found[1]}able {self._name}", str(error))
            raise error.with_message(message) from error

    # ------------------------------------------------------------------------------------------ committing

    def commit(self) -> MetadataVersion:
        """Makes the updates part of the table and returns its version after that.

        A CommitFailedError: others were first in every attempt that `commit.retry.*` allows. A CommitConflictError: a
        concurrent change took away what an update relied on. A CommitStateUnknownError: nobody can tell, no file was
        deleted, and the message says how to find out. After any other error nothing was changed, and the files written
        are deleted.
        """
        self._refuse_if_finished()
        self._finished = True
        report = AttemptedCommit(self._name, self.origin.start, lambda: self.attempts)
        with (
            report,
            self._naming(self._preview),
            self._commit as commit,
            self._metastore.lease(self.identifier, self.lock_properties) as lease,
        ):
            for attempt in self._policy(lease):
                with attempt:
                    self.attempts += 1
                    approach = self._eagerness.approach(self.attempts)
                    if approach is Approach.LOCK and self._exists:
                        with report.waiting():
                            lease.acquire()
                    base = self._base(lease, approach)
                    if base is not None and commit.is_made(Newest.of(base)):
                        break  # by an attempt that was told as lost
                    metadata = self._validate_and_apply(base)
                    if base is not None and metadata is base.metadata:
                        commit.leave(base)
                        break
                    self._swap(lease, base, write_version(base, metadata, self.workspace))
        made = commit.made
        if made.base is not None:
            delete_dropped_versions(made.base, made.version, self.workspace)
        report.made(made.version)
        return made.version

    # ------------------------------------------------------------------------------------ one of several

    def begin_part(self) -> None:
        """Begins the commit of the updates together with those of other tables (`SeveralTables`)."""
        self._refuse_if_finished()
        self._finished = True

    def part_on(self, base: MetadataVersion | None) -> MetadataVersion:
        """The version that is to follow `base`, with its files written; `base` itself if there is nothing to change.

        Raises as an attempt of `commit` does.
        """
        self.attempts += 1
        with self._naming(self._preview):
            metadata = self._validate_and_apply(base)
            assert base is not None
            return base if metadata is base.metadata else write_version(base, metadata, self.workspace)

    @property
    def lock_properties(self) -> Mapping[str, str]:
        """The properties that say how the table is locked: those before the transaction, if it was there."""
        start = self.origin.start
        return self._initial.properties if start is None else start.metadata.properties

    def _policy(self, lease: Lease[MetadataVersion]) -> Retrying:
        policy = commit_policy(
            self._preview.properties,
            lambda attempt: lease.blocks_others or self._eagerness.retries_without_waiting(attempt),
        )
        policy.before_sleep = self._log_retry
        return policy

    def _check_columns(self, base: MetadataVersion | None, after: TableMetadata) -> None:
        before = None if base is None else base.metadata.schema()
        if after.schema() is not before and isinstance(self._metastore, ShowsColumns):
            self._metastore.check_columns(self.identifier, before, after.schema())

    def _base(self, lease: Lease[MetadataVersion], approach: Approach) -> MetadataVersion | None:
        if not self.origin.loads:
            return None
        return self.origin.start if approach is Approach.TRUST else self.load(lease.load)

    def load(self, load: Callable[[], TablePointer]) -> MetadataVersion | None:
        """The newest version, by a pointer that `load` gives; None if the table is gone."""
        try:
            pointer = load()
        except NotAnIcebergTableError:
            raise
        except NoSuchTableError:
            return None
        return self._known(pointer.metadata_location) or read_current(pointer, self.workspace.storage)

    def _read(self, location: str) -> MetadataVersion:
        return self._known(location) or read_version(location, self.workspace.storage)

    def _known(self, location: str) -> MetadataVersion | None:
        start = self.origin.start
        is_known = start is not None and location == start.location and is_never_reused(location)
        return start if is_known else None

    def _validate_and_apply(self, base: MetadataVersion | None) -> TableMetadata:
        """The metadata to commit; if files of the table are gone, it may be that the table itself is, or another."""
        try:
            metadata = self._metadata_on(base)
        except MissingFileError as error:
            newest = self.load(lambda: self._metastore.load(self.identifier))
            if newest is not None:
                self.origin.metadata_on(newest, self.identifier)
                if base is not None and newest.identity != base.identity:
                    raise StaleBaseError(
                        f"Cannot commit to table {self._name} on {base.location}: the table has moved on, and files of "
                        f"this version are gone. {error}"
                    ) from error
            if base is None or newest is not None:
                raise
            raise NoSuchTableError(f"Cannot commit to table {self._name}: it was dropped meanwhile. {error}") from error
        self._check_columns(base, metadata)
        return metadata

    def _metadata_on(self, base: MetadataVersion | None) -> TableMetadata:
        start = self.origin.start
        if self.attempts == 1 and (base.identity if base else None) == (start.identity if start else None):
            return self.metadata  # as previewed: what was written for the preview is used
        self.workspace.begin_attempt()
        metadata = self.origin.metadata_on(base, self.identifier)
        if self._updates and not self.origin.replays_updates:
            check_same_ids(self._initial, metadata, self._name)
        moved_on = base is not None and start is not None and base.identity != start.identity
        if base is None or start is None or not (moved_on and self.origin.replays_updates):
            return apply_all(self._updates, metadata, self.workspace)
        try:
            if not all(isinstance(update, RequireUnchanged) for update in self._updates):
                for update in self._updates:
                    _check_branch(update, start.metadata, base.metadata)
                    update.validate(start.metadata, base.metadata, self.workspace)
            replayed = apply_all(self._updates, metadata, self.workspace)
        except (InvalidInputError, CatalogError) as error:
            fate = " dropped or renamed a column of it" if isinstance(error, UnknownColumnError) else ""
            raise CommitConflictError(
                f"Cannot commit to table {self._name}: the change was possible when it was made, and is not any more "
                f"after a concurrent commit{fate} ({base.location}). {error}"
            ) from error
        self._check_files(start.metadata, base.metadata, replayed)
        return replayed

    def _check_files(self, start: TableMetadata, base: TableMetadata, replayed: TableMetadata) -> None:
        """Refuses a replay on a version for which the files of this transaction, or files that others added, do not
        fit."""
        files = [file for update in self._updates for file in update.new_files]
        if files:
            check_new_ids(start, self._preview, replayed, self._name)
            check_same_history(files, start, base, self._name)
        check_added_nulls(files, start.schema(), base.schema(), f"commit to table {self._name}")
        check_nulls_added_since(start, base, replayed.schema(), self.workspace, self._name)

    def _swap(self, lease: Lease[MetadataVersion], base: MetadataVersion | None, new: MetadataVersion) -> None:
        try:
            self._commit.swap(lease, base, new)
        except TableAlreadyExistsError as error:
            raise self._appeared(True, error) from error
        except NotAnIcebergTableError:
            raise
        except NoSuchTableError as error:
            raise self._appeared(False, error) from error

    def _appeared(self, exists: bool, error: CatalogError) -> IcebergError:
        """The error for a table that was created or dropped during the attempt; retryable if both are allowed."""
        self._exists = exists
        if not self.origin.either:
            dropped = f"Cannot commit to table {self._name}: it was dropped meanwhile. {error}"
            return error if exists else NoSuchTableError(dropped)
        return CommitFailedError(f"Table {self._name} was {'created' if exists else 'dropped'} meanwhile. {error}")

    def _log_retry(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        logger.info("Commit to %s lost attempt %d, trying again: %s", self._name, state.attempt_number, error)


def table_commit(identifier: Identifier, metastore: Metastore, storage: Storage) -> Commit[MetadataVersion]:
    """A commit to a table that is no transaction: one that makes a metadata file the current one."""
    named = f"table {'.'.join(identifier)}"
    return Commit(
        named, identifier, metastore, lambda location: read_version(location, storage), FileWorkspace(storage)
    )


def apply_all(updates: Sequence[Update], base: TableMetadata, workspace: FileWorkspace) -> TableMetadata:
    metadata = base
    for update in updates:
        metadata = update.apply(metadata, workspace)
    return metadata


class Origin(Protocol):
    """The kind of a transaction: simple, create, replace or create-or-replace."""

    @property
    def start(self) -> MetadataVersion | None:
        """The version that the transaction was begun on, None if the table did not exist."""
        ...

    @property
    def loads(self) -> bool:
        """Whether an attempt looks for the table's newest version first."""
        ...

    @property
    def replays_updates(self) -> bool:
        """Whether updates rely on the state of the table at the start, and are validated when it has moved on."""
        ...

    @property
    def either(self) -> bool:
        """Whether the table may come or go meanwhile: the next attempt replaces or creates it."""
        ...

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The metadata that the updates are applied to, given the newest version."""
        ...


@dataclass(frozen=True)
class Existing:
    """A change of a table that exists."""

    start: MetadataVersion
    loads: bool = True
    replays_updates: bool = True
    either: bool = False

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The newest metadata, on which the updates are replayed; refused if the table was dropped, or another one has
        its name."""
        name = ".".join(identifier)
        if base is None:
            raise NoSuchTableError(
                f"Cannot commit to table {name}: it does not exist any more. It was dropped meanwhile."
            )
        if base.metadata.table_uuid != self.start.metadata.table_uuid:
            raise CommitConflictError(
                f"Cannot commit to table {name}: the change was made on the table with UUID "
                f"{self.start.metadata.table_uuid}, and the name now belongs to one with UUID "
                f"{base.metadata.table_uuid}. Load the table again and repeat the change on it."
            )
        return base.metadata


@dataclass(frozen=True)
class Created:
    """A new table: `initial` is its metadata before the transaction's updates."""

    initial: TableMetadata
    start: MetadataVersion | None = None
    loads: bool = False
    replays_updates: bool = False
    either: bool = False

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The initial metadata; the swap fails if the name is taken."""
        return self.initial


@dataclass(frozen=True)
class CreatedOrReplaced:
    """A new table, or the new state of the one that is there when the transaction commits. A concurrent change of the
    table that is replaced is replaced with it, and stays in its history."""

    create: Callable[[], TableMetadata]
    replace: Callable[[TableMetadata], TableMetadata]
    start: MetadataVersion | None
    must_exist: bool = False
    loads: bool = True
    replays_updates: bool = False

    @property
    def either(self) -> bool:
        """Whether the table may come or go meanwhile."""
        return not self.must_exist

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The replaced metadata if the table exists, else the created."""
        if base is not None:
            return self.replace(base.metadata)
        if self.must_exist:
            raise NoSuchTableError(f"Cannot replace table {'.'.join(identifier)}: it does not exist. Create it.")
        return self.create()


def _check_branch(update: Update, start: TableMetadata, base: TableMetadata) -> None:
    """Refuses a change of a branch that is gone since: it would begin anew, at the head of main."""
    branch = getattr(update, "branch", None)
    if branch in start.refs and branch not in base.refs and not isinstance(update, FastForward):
        raise CommitConflictError(
            f"Cannot commit to branch {branch!r} of ",
            base.location,
            ": a concurrent commit dropped it. Create the branch again, and repeat the change.",
        )
