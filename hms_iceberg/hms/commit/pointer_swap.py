"""Makes a metadata file a table's current one, and tells truly how that ended.

An alter or create is sent once and never again. Where its answer is lost, or is an error that may hide a success, the
row is read: it names the new file (done), it was changed by somebody else in a way that shuts ours out (failed), or
nobody can tell (unknown).
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcebergError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.capability import MODIFIED, expectation
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.row_settings import RowSettings
from hms_iceberg.hms.rows.table_rows import (
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    is_iceberg_table,
    new_row,
    table_pointer,
    update_row,
)
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer, Version

logger = logging.getLogger(__name__)

# How long a request whose answer was lost may still be worked on while its lock is held, in seconds between looks.
_LOOKS = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)
_LATE_SECONDS = 30.0
_INCOMPATIBLE = "types incompatible with the existing columns"
_COLUMN_SETTING = "hive.metastore.disallow.incompatible.col.type.changes"


class Guard(Protocol):
    """What keeps other writers away during a swap."""

    def ensure_active(self) -> None:
        """Raises LockError where it does not keep them away any more."""
        ...

    def linger(self, settled: Callable[[], bool]) -> None:
        """Keeps them away after the swap as well, for as long as a lost request may arrive late and is not settled."""
        ...


@dataclass(frozen=True)
class PointerSwap:
    """Swaps of one metastore.

    Attributes:
        client: the metastore.
        settings: what its rows show.
    """

    client: HmsClient
    settings: RowSettings

    noun: ClassVar[str] = "table"

    # ----------------------------------------------------------------------------------------------- rows

    def _named(self, identifier: Identifier) -> str:
        return f"{self.noun} {'.'.join(identifier)}"

    def _new_row(self, identifier: Identifier, new: Version) -> ttypes.Table:
        assert isinstance(new, MetadataVersion)
        return new_row(identifier, new, self.settings)

    def _update_row(self, row: ttypes.Table, base: Version, new: Version) -> None:
        assert isinstance(base, MetadataVersion) and isinstance(new, MetadataVersion)
        update_row(row, base, new, self.settings)

    def _pointer(self, row: ttypes.Table) -> TablePointer:
        return table_pointer(row)

    # --------------------------------------------------------------------------------------------- create

    def create(self, identifier: Identifier, new: Version) -> None:
        """Creates the row of a new table. Its name is taken by one of several at once, so no lock is needed.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: no such namespace.
            CommitStateUnknownError: the answer was lost, and the table is not there (yet); or it was an error that may
                be about our own table, and the table cannot be looked at.
        """
        name = self._named(identifier)
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
            if row is None or not _shows(row, new):
                raise

    # ---------------------------------------------------------------------------------------------- alter

    def commit(
        self,
        identifier: Identifier,
        base: Version,
        new: Version,
        guard: Guard,
        compare: bool,
        row: ttypes.Table | None = None,
    ) -> None:
        """Makes the row of an existing table show `new` instead of `base`.

        Args:
            identifier: the table.
            base: what it has to show now.
            new: what it is to show.
            guard: keeps other writers away.
            compare: whether the server is to compare once more while it alters (see `capability`).
            row: what it shows, where it was read a moment ago under the guard.

        Raises:
            CommitFailedError: somebody else was first, or the lock was lost before anything was sent.
            NoSuchTableError: the table is gone.
            CommitStateUnknownError: nobody can tell.
            MetastoreError: the metastore refused, and nothing was changed.
        """
        name = self._named(identifier)
        row = row or self.client.get_table(*identifier)
        pointer = self._pointer(row)
        if pointer.metadata_location == new.location:
            return
        if pointer.metadata_location != base.location:
            raise CommitFailedError(
                f"Cannot commit to {name}: it moved on since the change was made. Expected the metadata file "
                f"{base.location}, found {pointer.metadata_location}. Replay the change on the newer version."
            )
        old = copy.copy(row)
        self._update_row(row, base, new)
        self._ensure_active(identifier, guard)
        environment = expectation(METADATA_LOCATION, base.location) if compare else {}
        try:
            self._alter(identifier, old, row, environment, guard)
        except MetastoreAnswerLostError as error:
            self._settle(identifier, base, new, guard, compare, error)
        except MetastoreUnavailableError:
            raise  # nothing was sent
        except MetastoreError as error:
            self._judge(identifier, base, new, error)
        else:
            self._check_guard(identifier, new, guard)

    def _ensure_active(self, identifier: Identifier, guard: Guard) -> None:
        try:
            guard.ensure_active()
        except LockError as error:
            raise CommitFailedError(f"Cannot commit to {self._named(identifier)}, nothing was sent: {error}") from error

    def _alter(
        self, identifier: Identifier, old: ttypes.Table, row: ttypes.Table, environment: Mapping[str, str], guard: Guard
    ) -> None:
        """Alters the row; where the server dislikes the new columns in the old ones' places, in two steps."""
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
        """Takes all columns out of the row, which still shows the base: after that, any columns may be put in.

        Raises:
            CommitFailedError: the answer was lost; the new version was not sent.
            MetastoreError: the server does not allow this either; names its setting.
        """
        name = self._named(identifier)
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
        """Waits until a lost request to remove the columns has arrived, or is not to be expected any more.

        It shows the base: where the server does not compare, it would undo the replay that follows.
        """
        deadline = time.monotonic() + (_LOOKS[-1] if compare else _LATE_SECONDS)
        while time.monotonic() < deadline:
            try:
                row = self._find(identifier)
                if row is None or not row.sd.cols:
                    return
            except IcebergError as failed:
                logger.info("The %s cannot be looked at: %s", self._named(identifier), failed)
            time.sleep(_LOOKS[-1] / 4)

    # ------------------------------------------------------------------------------------------- outcomes

    def _settle(
        self,
        identifier: Identifier,
        base: Version,
        new: Version,
        guard: Guard,
        compare: bool,
        error: MetastoreAnswerLostError,
    ) -> None:
        """The answer was lost: watches the row for as long as the request may still be worked on.

        Where the server does not compare, a request that arrives even later would undo what others commit meanwhile,
        so that they are kept away for longer.
        """
        name = self._named(identifier)
        for pause in _LOOKS:
            time.sleep(pause)
            try:
                row = self._find(identifier)
            except IcebergError as failed:
                logger.info("The %s cannot be looked at: %s", name, failed)
                continue
            if row is None:
                break
            if _shows(row, new):
                return
            if compare and _follows(row, base):
                # Another version took the base's place, and the server compares: ours can never get in.
                raise CommitFailedError(
                    f"Cannot commit to {name}: another commit was first. Replay the change on the newer version."
                ) from error
        if not compare:
            guard.linger(lambda: self._has_arrived(identifier, new))
        raise _unknown(name, error) from error

    def _has_arrived(self, identifier: Identifier, new: Version) -> bool:
        try:
            row = self._find(identifier)
        except IcebergError:
            return False
        return row is None or _shows(row, new)

    def _judge(self, identifier: Identifier, base: Version, new: Version, error: MetastoreError) -> None:
        """The server answered with an error, so that nothing is pending: the row says what it did."""
        name = self._named(identifier)
        row = self._row_after(identifier, error)
        if row is None:
            raise NoSuchTableError(f"Cannot commit to {name}: it was dropped meanwhile.") from error
        if _shows(row, new):
            logger.warning("The commit to %s was made, although the metastore reported: %s", name, error)
            return
        if MODIFIED in str(error):
            raise CommitFailedError(
                f"Cannot commit to {name}: another commit was first. Replay the change on the newer version."
            ) from error
        if (row.parameters or {}).get(METADATA_LOCATION) != base.location:
            raise _unknown(name, error) from error
        raise error

    def _check_guard(self, identifier: Identifier, new: Version, guard: Guard) -> None:
        """A lock that was lost while the row was altered let somebody else in: looks who won."""
        try:
            guard.ensure_active()
        except LockError as error:
            row = self._row_after(identifier, error)
            if row is None or not _shows(row, new):
                raise _unknown(self._named(identifier), error) from error

    def _appears(self, identifier: Identifier, new: Version) -> bool:
        for pause in _LOOKS:
            time.sleep(pause)
            try:
                row = self._find(identifier)
            except IcebergError as failed:
                logger.info("Table %s cannot be looked at: %s", ".".join(identifier), failed)
                continue
            if row is not None:
                return _shows(row, new)
        return False

    def _row_after(self, identifier: Identifier, error: IcebergError) -> ttypes.Table | None:
        """The row, which says what a request did that was answered with an error.

        Raises:
            CommitStateUnknownError: it cannot be read.
        """
        try:
            return self._find(identifier)
        except IcebergError as failed:
            raise _unknown(self._named(identifier), error) from failed

    def _find(self, identifier: Identifier) -> ttypes.Table | None:
        try:
            return self.client.get_table(*identifier)
        except NoSuchTableError:
            return None


def _shows(row: ttypes.Table, new: Version) -> bool:
    """Whether the row names a version as the current or the previous one."""
    parameters = row.parameters or {}
    return new.location in (parameters.get(METADATA_LOCATION), parameters.get(PREVIOUS_METADATA_LOCATION))


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
