"""Makes a metadata file the current one of a table or view, and determines the outcome.

An alter or create is sent once and never again. If its answer is lost, or is an error that may hide a success, the
row is read: it names the new file (done), another writer changed it in a way that shuts ours out (failed), or the
outcome is unknown.
"""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Generic, Protocol

from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcebergError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    NoSuchTableError,
    StaleBaseError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.capability import MODIFIED, expectation
from hms_iceberg.hms.connection.answers import polls
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, RowSettings, is_iceberg_table
from hms_iceberg.metastore import Identifier, TablePointer, V, Version

logger = logging.getLogger(__name__)

_INCOMPATIBLE = "types incompatible with the existing columns"
_COLUMN_SETTING = "hive.metastore.disallow.incompatible.col.type.changes"


class Guard(Protocol):
    """The lock or comparison that keeps other writers away during a swap."""

    def ensure_active(self) -> None:
        """Raises LockError if the guard no longer keeps other writers away."""
        ...


@dataclass(frozen=True)
class PointerSwap(ABC, Generic[V]):
    """Swaps of the tables, or of the views, of one metastore."""

    client: HmsClient
    settings: RowSettings

    noun: ClassVar[str]

    # ----------------------------------------------------------------------------------------------- rows

    def named(self, identifier: Identifier) -> str:
        """Kind and name, for messages."""
        return f"{self.noun} {'.'.join(identifier)}"

    def read(self, identifier: Identifier) -> ttypes.Table:
        return self.client.get_table(*identifier)

    @abstractmethod
    def pointer(self, row: ttypes.Table) -> TablePointer:
        """The pointer that a row holds; raises if the row is of another kind."""

    @abstractmethod
    def renamable(self, row: ttypes.Table) -> TablePointer:
        """The pointer of a row that may be renamed; raises if it may not."""

    @abstractmethod
    def lock_properties(self, version: V) -> Mapping[str, str]:
        """The properties of a version that say how its writers lock."""

    @abstractmethod
    def _new_row(self, identifier: Identifier, new: V) -> ttypes.Table:
        """The row of a version that is created."""

    @abstractmethod
    def _update_row(self, row: ttypes.Table, base: V, new: V) -> None:
        """Makes a row that shows `base` show `new`, in place."""

    # --------------------------------------------------------------------------------------------- create

    def create(self, identifier: Identifier, new: V) -> None:
        """Creates a new table's row; of several creates one gets the name, so no lock is needed. The state is unknown
        if the answer was lost and the row is not there, not as it was created, or cannot be read."""
        name = self.named(identifier)
        try:
            self.client.create_table(self._new_row(identifier, new))
        except TableAlreadyExistsError as error:
            row = self._row_after(identifier, error)
            if row is None or not _shows(row, new):
                raise TableAlreadyExistsError(
                    f"Cannot create {name}: {_kind(row)} of that name exists. Choose another name, or drop it."
                ) from error
        except MetastoreAnswerLostError as error:
            if not self._appears(identifier, new):
                raise _unknown(name, error) from error
        except MetastoreUnavailableError:
            raise  # nothing was sent
        except MetastoreError as error:
            row = self._row_after(identifier, error)  # a listener of the server may fail after the table was created
            if row is None:
                raise
            if not _shows(row, new):
                raise _unknown(name, error) from error  # others may have changed ours, or taken its place

    # ---------------------------------------------------------------------------------------------- alter

    def commit(
        self,
        identifier: Identifier,
        base: V,
        new: V,
        guard: Guard,
        compare: bool,
        row: ttypes.Table | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Makes the row of an existing table show `new` instead of `base`, with the parameters `more`; `row` is the
        present one if it was just read under the guard; `compare` has the server compare once more. After
        StaleBaseError, CommitFailedError or MetastoreError nothing was changed."""
        name = self.named(identifier)
        row = row or self.read(identifier)
        pointer = self.pointer(row)
        if pointer.metadata_location == new.location:
            return
        if pointer.metadata_location != base.location:
            raise StaleBaseError(
                f"Cannot commit to {name}: it moved on since the change was made. Expected the metadata file "
                f"{base.location}, found {pointer.metadata_location}. Replay the change on the newer version."
            )
        old = copy.copy(row)
        self._update_row(row, base, new)
        row.parameters.update(more)
        self._ensure_active(identifier, guard)
        try:
            self.alter(identifier, old, row, compare, guard)
        except MetastoreAnswerLostError as error:
            self._settle(identifier, base, new, compare, error)
        except MetastoreUnavailableError:
            raise  # nothing was sent
        except MetastoreError as error:
            self._judge(identifier, base, new, error)
        else:
            self._check_guard(identifier, base, new, guard)

    def _ensure_active(self, identifier: Identifier, guard: Guard) -> None:
        try:
            guard.ensure_active()
        except LockError as error:
            raise CommitFailedError(f"Cannot commit to {self.named(identifier)}, nothing was sent: {error}") from error

    def alter(self, identifier: Identifier, old: ttypes.Table, row: ttypes.Table, compare: bool, guard: Guard) -> None:
        """Alters the row `old`; if the server refuses the new columns in the old ones' places, in two steps."""
        environment = expectation(METADATA_LOCATION, old.parameters[METADATA_LOCATION]) if compare else {}
        try:
            self.client.alter_table(identifier[0], identifier[1], row, environment)
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            if _INCOMPATIBLE not in str(error):
                raise
            self._remove_columns(identifier, old, environment, error)
            self._ensure_active(identifier, guard)
            self.client.alter_table(identifier[0], identifier[1], row, environment)

    def _remove_columns(
        self, identifier: Identifier, old: ttypes.Table, environment: Mapping[str, str], refusal: MetastoreError
    ) -> None:
        """Takes all columns out of the row, which still shows the base: after that, any columns may be put in."""
        name = self.named(identifier)
        empty = copy.copy(old)
        empty.sd = copy.copy(old.sd)
        empty.sd.cols = []
        # With a comparison the server wants the compared parameter to be set, if only to its old value.
        try:
            self.client.alter_table(identifier[0], identifier[1], empty, environment)
        except MetastoreAnswerLostError as error:
            self._await_empty(identifier, compare=bool(environment))
            raise CommitFailedError(f"Cannot commit to {name}, its new version was not sent: {error}") from error
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            if MODIFIED in str(error):
                raise
            raise MetastoreError(
                f"Cannot commit to {name}: the metastore refuses the new columns ({refusal}), as its setting "
                f"{_COLUMN_SETTING} is true. Nothing was changed. Set it to false on the metastore, and repeat."
            ) from error

    def _await_empty(self, identifier: Identifier, compare: bool) -> None:
        """Waits until a lost request to remove the columns has arrived, or is not to be expected any more. The request
        shows the base: if the server does not compare, it would undo the replay that follows."""
        for row in self._polled_rows(identifier, compare):
            if row is None or not row.sd.cols:
                return

    # ------------------------------------------------------------------------------------------- outcomes

    def _settle(self, identifier: Identifier, base: V, new: V, compare: bool, error: MetastoreAnswerLostError) -> None:
        """Watches the row after a lost answer, for as long as the request may still be worked on."""
        name = self.named(identifier)
        for row in self._polled_rows(identifier, compare):
            if row is None:
                break
            if _shows(row, new, base):
                return
            if compare and _follows(row, base):
                # Another version took the base's place, and the server compares: ours can never get in.
                raise CommitFailedError(
                    f"Cannot commit to {name}: another commit was first. Replay the change on the newer version."
                ) from error
        raise _unknown(name, error) from error

    def _judge(self, identifier: Identifier, base: V, new: V, error: MetastoreError) -> None:
        """Finds out from the row what became of a request that the server answered with an error."""
        name = self.named(identifier)
        row = self._row_after(identifier, error)
        if row is None:
            raise _unknown(name, error) from error  # it may have been made, and the table renamed since
        if _shows(row, new, base):
            logger.warning("The commit to %s was made, although the metastore reported: %s", name, error)
            return
        shows_base = (row.parameters or {}).get(METADATA_LOCATION) == base.location
        if not shows_base and not _follows(row, base):
            # Others have committed more than once: the row alone does not tell whether ours is among what they follow.
            raise _unknown(name, error) from error
        if MODIFIED in str(error):
            raise CommitFailedError(
                f"Cannot commit to {name}: another commit was first. Replay the change on the newer version."
            ) from error
        if not shows_base:
            raise _unknown(name, error) from error
        raise error

    def _check_guard(self, identifier: Identifier, base: V, new: V, guard: Guard) -> None:
        """Finds out who won, if a lock that was lost while the row was altered let another writer in."""
        try:
            guard.ensure_active()
        except LockError as error:
            row = self._row_after(identifier, error)
            if row is None or not _shows(row, new, base):
                raise _unknown(self.named(identifier), error) from error

    def _appears(self, identifier: Identifier, new: V) -> bool:
        for row in self._polled_rows(identifier, True):  # a create that is late meets its own name or a free one
            if row is not None:
                return _shows(row, new)
        return False

    def _polled_rows(self, identifier: Identifier, compare: bool) -> Iterator[ttypes.Table | None]:
        """The row, again and again, for as long as a lost request may still be worked on."""
        name = self.named(identifier)
        for _ in polls(name, compare):
            try:
                row = self._find(identifier)
            except IcebergError as failed:
                logger.info("The %s cannot be looked at: %s", name, failed)
                continue
            yield row

    def _row_after(self, identifier: Identifier, error: IcebergError) -> ttypes.Table | None:
        """The row after a request that was answered with an error; the outcome is unknown if it cannot be read."""
        try:
            return self._find(identifier)
        except IcebergError as failed:
            raise _unknown(self.named(identifier), error) from failed

    def _find(self, identifier: Identifier) -> ttypes.Table | None:
        try:
            return self.client.get_table(*identifier)
        except NoSuchTableError:
            return None


def _shows(row: ttypes.Table, new: Version, base: Version | None = None) -> bool:
    """Whether the row names a version as the current one, or as the one before the current. A swap back to the version
    before the base finds it there already: as long as the base is current, nothing was made."""
    parameters = row.parameters or {}
    current, previous = parameters.get(METADATA_LOCATION), parameters.get(PREVIOUS_METADATA_LOCATION)
    return current == new.location or (previous == new.location and (base is None or current != base.location))


def _follows(row: ttypes.Table, base: Version) -> bool:
    parameters = row.parameters or {}
    current, previous = parameters.get(METADATA_LOCATION), parameters.get(PREVIOUS_METADATA_LOCATION)
    return bool(current) and current != base.location and previous == base.location


def _kind(row: ttypes.Table | None) -> str:
    if row is None:
        return "a table"
    if row.tableType == "VIRTUAL_VIEW":
        return "a view"
    return "an Iceberg table" if is_iceberg_table(row) else "a table that is not an Iceberg table"


def _unknown(name: str, error: BaseException) -> CommitStateUnknownError:
    return CommitStateUnknownError(f"The commit to {name} may or may not have been made: {error}")
