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
from hms_iceberg.migration.migration_journal import MigrationRecord
from hms_iceberg.migration.migration_state import MIGRATION_ORIGINAL, MigrationState, Original, find_state
from hms_iceberg.migration.undo.handback_plan import undo_handback
from hms_iceberg.migration.undo.made_files import MadeFiles
from hms_iceberg.processes import Process
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
    """Keeps the threads of this process from working on one table at the same time."""
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
    """Finds traces of an earlier migration of a table (by its lower-case name), and finishes or removes them."""

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
        """The state of the migration according to its traces; None if there are none."""
        return find_state(self._hive, self._storage, self._database, self._table, self._backup_name)

    def settled(self) -> MigrationState | None:
        """Waits until the state stops changing, and returns it: the metastore may still be carrying out a request."""
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
        """The state of the migration; an unfinished one is taken over from a dead process, or (`take_over`) any."""
        state = self.find()
        if state is None or (state.is_done and not self._is_being_taken_back(state)):
            return state
        if state.record is not None:
            worker = state.record.taken_back_by or state.record.journal.worker
            if worker != Process.this() and worker.may_be_alive() and not take_over:
                raise MigrationError(
                    f"Process {worker.pid} on host {worker.host} began to migrate {self._name}, or to take it back, "
                    f"and may still be at work (journal: {state.record.location}). Wait for its end; if you "
                    "are sure that it is dead, run the same command with --take-over."
                )
            logger.info("Taking over %s from process %d on %s", self._name, worker.pid, worker.host)
        return self.settled()

    def _is_being_taken_back(self, state: MigrationState) -> bool:
        return state.record is not None and state.record.taken_back_by is not None

    def forget_to_take_back(self, state: MigrationState) -> None:
        """Deletes the note of an unfinished rollback, and takes back what it gave the Hive table. Does nothing if names
        were switched: what Hive was given is Hive's, and the same command has to go on."""
        if state.record is None or self._given_up(state) is not None:
            return
        undo_handback(self._hive, state.record, state.hive_table)
        state.record.forget_given_up()
        state.record.end_taking_back()

    def put_back(self, discard_history: bool = False) -> bool:
        """Puts the Hive table back, and returns True, unless the migrated table has its name; `discard_history` deletes
        metadata even of a table changed since. Rows that no migration leaves behind are a MigrationError."""
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
        """Undoes a migration; each step may have been done before, so that an interrupted undo can be repeated."""
        if state.table is not None and state.table.is_iceberg:
            raise MigrationError(f"Table {self._name} is an Iceberg table; there is no Hive table to put back.")
        if state.table is None and state.backup is None:
            raise MigrationError(
                f"Table {self._name} is gone, and so is its backup, so that nothing can be put back. Its files were "
                "not touched."
            )
        record, made = state.record, self._made_files(state)
        if record is not None and made is not None:
            self._refuse_if_renamed(state, record, made)
            if not discard_history:
                self._refuse_to_discard_history(record, made)
            if made.is_given_up:
                record.note_switched()  # the rows, which show it, go
            else:
                undo_handback(self._hive, record, state.hive_table)  # it may not be all
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
        if record is not None:
            if made is not None:
                made.delete()
            record.delete()
        logger.info("Table %s is the Hive table that it was", self._name)

    def _made_files(self, state: MigrationState) -> MadeFiles | None:
        """The list of files that the migration made; None if there is no list, and so no such file."""
        if state.record is None or not self._storage.exists(state.record.files_location):
            return None
        return MadeFiles(self._hive, state.record, self._given_up(state))

    def _given_up(self, state: MigrationState) -> str | None:
        """The version from which the Hive table took its name back; None if it did not. The note of a rollback that was
        killed before its switch says nothing about later changes."""
        if state.record is None or state.is_done:
            return None
        version = state.record.given_up
        if version is None or state.shows_switch_back(version) or state.record.is_switched:
            return version
        return None

    def refuse_if_renamed(self, state: MigrationState) -> None:
        """Leaves a migrated table alone that somebody has given another name."""
        made = self._made_files(state)
        if state.record is not None and made is not None and not state.is_done:
            self._refuse_if_renamed(state, state.record, made)

    def _refuse_if_renamed(self, state: MigrationState, record: MigrationRecord, made: MadeFiles) -> None:
        if state.staging is not None or made.is_given_up or made.renamed is None:
            return
        raise MigrationError(
            f"The Iceberg table that {self._name} became is called {made.renamed} now, and its way back is in "
            f"{record.folder}. Nothing was changed. Rename it to {self._name} to take it back. If no way back is "
            f"wanted, drop the backup, delete {record.location}, and keep other tables out of that "
            "folder."
        )

    def _refuse_to_discard_history(self, record: MigrationRecord, made: MadeFiles) -> None:
        """Refuses to delete an Iceberg table that was used, and whose row somebody dropped: it may be wanted back."""
        if made.is_given_up:
            return
        # A copy is made in two steps: the table, then its rows.
        if newest_version(made.versions) >= (2 if record.journal.is_copy else 1):
            raise MigrationError(
                f"The folder {record.folder} holds an Iceberg table {self._name} that was changed after its migration. "
                "Register it again if you want it back (Catalog.register_table), or "
                f"discard it: hms-iceberg rollback-migration {self._name} --discard-changes"
            )

    def _restore(self) -> None:
        """Gives the Hive table its type and parameters back, if the migration had changed them."""
        row = self._hive.find(self._database, self._table)
        text = row.parameters.get(MIGRATION_ORIGINAL) if row is not None else None
        if text is not None:
            self._hive.change(self._database, self._table, Original.from_text(text).restored())


def newest_version(files: Iterable[str]) -> int:
    """The highest number of a metadata file, of which the first is 0; attempts that were killed share one."""
    found = map(_VERSION.search, files)
    return max((int(each[1]) for each in found if each), default=0)
