"""Takes up migrations that did not come to their end, and puts Hive tables back."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hms_iceberg.errors import MigrationError, NoSuchTableError, TableAlreadyExistsError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.migration.handback.given_files import take_away, was_given
from hms_iceberg.migration.handback.given_note import NOTE_NAME
from hms_iceberg.migration.migration_journal import (
    JOURNAL_NAME,
    Journal,
    Worker,
    journal_location,
    read_rollback_note,
    remove_rollback_note,
    write_rollback_note,
)
from hms_iceberg.migration.state import MIGRATION_ORIGINAL, MigrationState, Original, copy_location, find_state
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

# For so long must rows stand still after a crash, before they are taken for what the crash left.
SETTLED_SECONDS = 1.5
_SETTLING_ROUNDS = 20
_ROUNDS = 5
_VERSION = re.compile(r"/(\d+)-[^/]*\.metadata\.json$")

_active: set[tuple[int, str, str]] = set()
_active_lock = threading.Lock()


@contextmanager
def only_one(database: str, name: str) -> Iterator[None]:
    """Keeps the threads of this process from working on one table at the same time.

    Raises:
        MigrationError: another thread does.
    """
    key = (os.getpid(), database, name)
    with _active_lock:
        if key in _active:
            raise MigrationError(f"Another thread of this process migrates {database}.{name}, or takes it back.")
        _active.add(key)
    try:
        yield
    finally:
        with _active_lock:
            _active.discard(key)


class Recovery:
    """The traces of a migration of one table, and what to do about them.

    Args:
        hive: the metastore's rows.
        storage: where the journal is.
        database, name: the table's name, lower-case.
        backup_name: the backup's name, if it is not the default one.
    """

    def __init__(
        self, hive: HiveTables, storage: Storage, database: str, name: str, backup_name: str | None = None
    ) -> None:
        self._hive = hive
        self._storage = storage
        self._database = database
        self._table = name
        self._backup_name = backup_name
        self._name = f"{database}.{name}"

    def find(self) -> MigrationState | None:
        """Where the migration stands; None if there is no trace of one.

        Raises:
            MigrationError: its journal cannot be read.
        """
        return find_state(self._hive, self._storage, self._database, self._table, self._backup_name)

    def settled(self) -> MigrationState | None:
        """The same once it stands still: the metastore may still be at work on what somebody asked it for."""
        state = self.find()
        since = started = time.monotonic()
        while (
            time.monotonic() - since < SETTLED_SECONDS
            and time.monotonic() - started < _SETTLING_ROUNDS * SETTLED_SECONDS
        ):
            time.sleep(SETTLED_SECONDS / 5)
            found = self.find()
            if found != state:
                state, since = found, time.monotonic()
        return state

    def take_up(self, take_over: bool) -> MigrationState | None:
        """The state, with nobody else at work on it: an unfinished migration is taken over from a dead process.

        Args:
            take_over: go on even if the process may be alive.

        Raises:
            MigrationError: its process is alive, or on another machine if that cannot be told.
        """
        state = self.find()
        if state is None or (state.is_done and not self._is_being_taken_back(state)):
            return state
        if state.journal is not None and state.folder is not None:
            worker = read_rollback_note(self._storage, state.folder) or state.journal.worker
            if worker != Worker.this_process() and worker.may_be_alive() and not take_over:
                raise MigrationError(
                    f"Process {worker.pid} on host {worker.host} began to migrate {self._name}, or to take it back, "
                    f"and may still be at work (journal: {journal_location(state.folder)}). Wait for its end; if you "
                    "are sure that it is dead, run the same command with --take-over."
                )
            logger.info("Taking over %s from process %d on %s", self._name, worker.pid, worker.host)
        return self.settled()

    def _is_being_taken_back(self, state: MigrationState) -> bool:
        return state.folder is not None and read_rollback_note(self._storage, state.folder) is not None

    def begin_to_take_back(self, state: MigrationState) -> bool:
        """Note that this process takes the table back; whether one that is dead had begun to."""
        if state.folder is None:
            return False
        begun = self._is_being_taken_back(state)
        remove_rollback_note(self._storage, state.folder)
        write_rollback_note(self._storage, state.folder)
        return begun

    def forget_to_take_back(self, state: MigrationState) -> None:
        """Take the note away again, and what the Hive table was given for its way back."""
        if state.folder is not None:
            take_away(self._hive, self._storage, state.folder, state.backup)
            remove_rollback_note(self._storage, state.folder)

    def put_back(self, discard_history: bool = False) -> bool:
        """Put the Hive table back, if it is not the migrated Iceberg table that has its name.

        Args:
            discard_history: delete the metadata even of an Iceberg table that was changed after its migration.

        Returns:
            False if the migration is done after all, and nothing was put back.

        Raises:
            MigrationError: the rows are in a state that no migration leaves behind; nothing was changed.
        """
        for _ in range(_ROUNDS):
            state = self.find()
            if state is None:
                return True
            if state.is_done:
                return False
            try:
                self._undo(state, discard_history)
            except (TableAlreadyExistsError, NoSuchTableError) as error:
                # The metastore did just now what somebody had asked it for.
                logger.info("The rows of %s changed meanwhile; looking again: %s", self._name, error)
                time.sleep(SETTLED_SECONDS / 5)
        raise MigrationError(f"The rows of {self._name} do not stand still. Look for others who change them.")

    def _undo(self, state: MigrationState, discard_history: bool) -> None:
        """Every step may have been done before, so that an undo that was interrupted can be repeated."""
        if state.table is not None and state.table.is_iceberg:
            raise MigrationError(f"Table {self._name} is an Iceberg table; there is no Hive table to put back.")
        if state.table is None and state.backup is None:
            raise MigrationError(
                f"Table {self._name} is gone, and so is its backup, so that nothing can be put back. Its files were "
                "not touched."
            )
        if not discard_history:
            self._refuse_to_discard_history(state)
        if state.table is None and state.backup is not None:
            self._hive.rename(state.database, state.backup.name, state.name)
        elif state.backup is not None:
            if state.backup.partition_keys:
                raise MigrationError(
                    f"Both {self._name} and {state.backup} are Hive tables with partitions; drop one of them."
                )
            self._hive.drop(state.database, state.backup.name)
        self._restore()
        if state.staging is not None:
            self._hive.drop(state.database, state.staging.name)
        if state.journal is not None and state.folder is not None:
            _remove_copy(self._storage, state.folder, state.journal)
            _remove_metadata(self._storage, state.folder, state.journal)
        logger.info("Table %s is the Hive table that it was", self._name)

    def _refuse_to_discard_history(self, state: MigrationState) -> None:
        """An Iceberg table that was used, and whose row somebody dropped, may be wanted back."""
        if state.folder is None or (state.table is not None and was_given(self._storage, state.folder)):
            return
        # A copy is made in two steps: the table, then its rows.
        made = 2 if state.journal is not None and _is_of_copy(state.folder, state.journal) else 1
        if newest_version(info.location for info in self._storage.list(state.folder)) >= made:
            raise MigrationError(
                f"The folder {state.folder} holds an Iceberg table {self._name} that was changed after its migration. "
                "Register it again if you want it back (Catalog.register_table), or "
                f"discard it: hms-iceberg rollback-migration {self._name} --discard-changes"
            )

    def _restore(self) -> None:
        """Give the Hive table its type and parameters back, if the migration had changed them."""
        row = self._hive.find(self._database, self._table)
        text = row.parameters.get(MIGRATION_ORIGINAL) if row is not None else None
        if text is not None:
            self._hive.change(self._database, self._table, Original.from_text(text).restored())


def newest_version(files: Iterable[str]) -> int:
    """The highest number of a metadata file, of which the first is 0; attempts that were killed share one."""
    return max((int(found[1]) for file in files if (found := _VERSION.search(file))), default=0)


def _remove_copy(storage: Storage, folder: str, journal: Journal) -> None:
    """Delete the rows that a rewrite copied, which are all that the copy's folder holds beside the metadata."""
    if _is_of_copy(folder, journal):
        for info in storage.list(copy_location(journal.location)):
            if not info.location.startswith(f"{folder}/"):
                storage.delete(info.location)


def _is_of_copy(folder: str, journal: Journal) -> bool:
    return folder.startswith(f"{copy_location(journal.location)}/")


def _remove_metadata(storage: Storage, folder: str, journal: Journal) -> None:
    """Delete the files that the migration and the Iceberg table wrote to the metadata folder, its notes last."""
    found = {info.location[len(folder) + 1 :]: info.location for info in storage.list(folder)}
    notes = [found.pop(name) for name in (NOTE_NAME, JOURNAL_NAME) if name in found]
    for location in [*(place for name, place in found.items() if name not in journal.existing), *notes]:
        storage.delete(location)
