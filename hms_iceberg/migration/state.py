"""How far a migration came, read from the metastore's rows and the journal; and how to put everything back.

Three names take part: the table's own, the backup's (the Hive table after the switch) and the staging table's (the
Iceberg table before it). Which of them exist, and what they are, tells where a migration stopped:

    table      backup     staging    meaning                                     a repeated `migrate` ...
    Hive       -          -/Iceberg  before the switch                           undoes it and starts anew
    Hive       copy       -/Iceberg  before the switch of a table in one step    undoes it and starts anew
    -          Hive       Iceberg    in the middle of the pair of renames        finishes it
    -          Hive       -          a rename was carried out after an undo      undoes it and starts anew
    Iceberg    Hive       -/Iceberg  done, but for a staging row                 says that it is done
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import MigrationError
from hms_iceberg.hms.hive_rows import HiveTable
from hms_iceberg.hms.hive_tables import HiveTables, RowChange
from hms_iceberg.migration.journal import (
    JOURNAL_NAME,
    Journal,
    Worker,
    journal_location,
    read_journal,
    read_rollback_note,
    remove_rollback_note,
)
from hms_iceberg.migration.source import table_location
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

# For so long must rows stand still after a crash, before they are taken for what the crash left.
SETTLED_SECONDS = 1.5

MIGRATION_ID = "hms_iceberg.migration-id"
MIGRATION_ORIGINAL = "hms_iceberg.migration-original"
PARTITIONED_METADATA = "metadata"
# Below the directory of a table without partitions, only hidden names are not read as its data by Hive and Spark.
HIDDEN_FOLDER = "_iceberg"
UNPARTITIONED_METADATA = f"{HIDDEN_FOLDER}/metadata"


@dataclass(frozen=True)
class Original:
    """What of a Hive table's row a migration changes, as it was; kept in the row itself too."""

    table_type: str
    parameters: Mapping[str, str | None]
    create_time: int

    @classmethod
    def of(cls, table: HiveTable, changed: tuple[str, ...]) -> Original:
        """What a table has in the places that will be changed."""
        return cls(table.table_type, {key: table.parameters.get(key) for key in changed}, table.create_time)

    def to_text(self) -> str:
        """As a parameter's value."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        """As a part of the journal."""
        return {"type": self.table_type, "parameters": dict(self.parameters), "created": self.create_time}

    @classmethod
    def from_text(cls, text: str) -> Original:
        """From a parameter's value."""
        content = json.loads(text)
        return cls(content["type"], content["parameters"], content["created"])

    def restored(self) -> RowChange:
        """The change that puts it back, without the marks of the migration."""
        parameters = {**self.parameters, MIGRATION_ID: None, MIGRATION_ORIGINAL: None}
        return RowChange(parameters, table_type=self.table_type)


def staging_name(table: str) -> str:
    """The name of the Iceberg table before the switch."""
    return f"{table}__iceberg_staging"


def default_backup_name(table: str) -> str:
    """The name of the Hive table after the switch, as Iceberg's own migration has it."""
    return f"{table}_backup_"


@dataclass(frozen=True)
class MigrationState:
    """The rows of a migration, and its journal.

    Attributes:
        database, name: the table's name.
        journal: None where it was lost, or deleted by an undo.
        folder: the metadata folder that holds the journal.
        table, backup, staging: rows that belong to the migration, or (the table's) stand in its place; else None.
    """

    database: str
    name: str
    journal: Journal | None
    folder: str | None
    table: HiveTable | None
    backup: HiveTable | None
    staging: HiveTable | None

    @property
    def is_done(self) -> bool:
        """Whether the name is the migrated Iceberg table's."""
        return self.table is not None and self.table.is_iceberg and self._is_ours(self.table)

    @property
    def is_between_renames(self) -> bool:
        """Whether the name is nobody's, and the Iceberg table ready to take it."""
        return self.table is None and self.backup is not None and self.staging is not None

    def _is_ours(self, row: HiveTable) -> bool:
        known = self.journal.migration_id if self.journal else row.parameters.get(MIGRATION_ID)
        return known is not None and row.parameters.get(MIGRATION_ID) == known


def find_state(
    hive: HiveTables, storage: Storage, database: str, name: str, backup_name: str | None
) -> MigrationState | None:
    """Look for a migration of a table.

    Args:
        hive: the metastore's rows.
        storage: where the journal is.
        database, name: the table's name, lower-case.
        backup_name: the backup's name, where it is not the default one.

    Returns:
        Where the migration stands; None where there is no trace of one.

    Raises:
        MigrationError: its journal cannot be read.
    """
    rows = {
        "table": hive.find(database, name),
        "staging": hive.find(database, staging_name(name)),
        "backup": hive.find(database, (backup_name or default_backup_name(name)).lower()),
    }
    journal, folder = None, None
    for row in rows.values():
        for candidate in _metadata_folders(row):
            found = read_journal(storage, candidate)
            if found is not None and (found.database, found.table) == (database, name):
                journal, folder = found, candidate
                break
        if journal is not None:
            break
    if journal is not None and (rows["backup"] is None or rows["backup"].name != journal.backup):
        rows["backup"] = hive.find(database, journal.backup)
    table = rows["table"]
    identity = journal.migration_id if journal else None
    backup = _belonging(rows["backup"], identity, iceberg=False)
    staging = _belonging(rows["staging"], identity, iceberg=True)
    marked = table is not None and MIGRATION_ID in table.parameters
    places = {row.location for row in (backup, staging) if row} | {journal.location if journal else ""}
    if table is not None and not marked and table_location(table) not in places:
        return None  # a table that was made later, under the name of one that was migrated
    if journal is None and backup is None and staging is None and not marked:
        return None
    return MigrationState(database, name, journal, folder, table, backup, staging)


def _metadata_folders(row: HiveTable | None) -> Iterator[str]:
    if row is not None and table_location(row):
        for name in (PARTITIONED_METADATA, UNPARTITIONED_METADATA):
            yield f"{table_location(row)}/{name}"


def _belonging(row: HiveTable | None, migration_id: str | None, iceberg: bool) -> HiveTable | None:
    if row is None or row.is_iceberg != iceberg:
        return None
    mark = row.parameters.get(MIGRATION_ID)
    return row if mark is not None and migration_id in (None, mark) else None


def undo(hive: HiveTables, storage: Storage, state: MigrationState) -> None:
    """Put the Hive table back as it was, and remove what the migration added.

    Every step may have been done before, so that an undo that was interrupted can be repeated.

    Raises:
        MigrationError: the rows are in a state that no migration leaves behind; nothing was changed.
    """
    name = f"{state.database}.{state.name}"
    if state.table is not None and state.table.is_iceberg:
        raise MigrationError(f"Table {name} is an Iceberg table; there is no Hive table to put back.")
    if state.table is None and state.backup is None:
        raise MigrationError(
            f"Table {name} is gone, and so is its backup, so that nothing can be put back. Its files were not touched."
        )
    if state.table is None and state.backup is not None:
        hive.rename(state.database, state.backup.name, state.name)
    elif state.backup is not None:
        if state.backup.partition_keys:
            raise MigrationError(f"Both {name} and {state.backup} are Hive tables with partitions; drop one of them.")
        hive.drop(state.database, state.backup.name)
    restore(hive, state)
    if state.staging is not None:
        hive.drop(state.database, state.staging.name)
    if state.journal is not None and state.folder is not None:
        remove_metadata(storage, state.folder, state.journal)
    logger.info("Table %s is the Hive table that it was", name)


def restore(hive: HiveTables, state: MigrationState) -> None:
    """Give the Hive table its type and parameters back, where the migration had changed them."""
    row = hive.find(state.database, state.name)
    text = row.parameters.get(MIGRATION_ORIGINAL) if row is not None else None
    if text is not None:
        hive.change(state.database, state.name, Original.from_text(text).restored())


def remove_metadata(storage: Storage, folder: str, journal: Journal) -> None:
    """Delete the files that the migration and the Iceberg table wrote to the metadata folder, the journal last."""
    kept = {*journal.existing, JOURNAL_NAME}
    last = None
    for info in storage.list(folder):
        relative = info.location[len(folder) + 1 :]
        if relative == JOURNAL_NAME:
            last = info.location
        elif relative not in kept:
            storage.delete(info.location)
    if last is not None:
        storage.delete(last)


# ---------------------------------------------------------------------------- one migration at a time

_ACTIVE: set[tuple[int, str, str]] = set()
_ACTIVE_LOCK = threading.Lock()


@contextmanager
def only_one(database: str, name: str) -> Iterator[None]:
    """Keeps the threads of this process from working on one table at the same time.

    Raises:
        MigrationError: another thread does.
    """
    key = (os.getpid(), database, name)
    with _ACTIVE_LOCK:
        if key in _ACTIVE:
            raise MigrationError(f"Another thread of this process migrates {database}.{name}, or takes it back.")
        _ACTIVE.add(key)
    try:
        yield
    finally:
        with _ACTIVE_LOCK:
            _ACTIVE.discard(key)


def take_up(
    hive: HiveTables, storage: Storage, database: str, name: str, backup_name: str | None, take_over: bool
) -> MigrationState | None:
    """Look for a migration of a table, and take an unfinished one over from a process that is dead.

    Args:
        hive: the metastore's rows.
        storage: where the journal is.
        database, name: the table's name, lower-case.
        backup_name: the backup's name, where it is not the default one.
        take_over: go on even where the process may be alive.

    Returns:
        Where the migration stands, nobody else being at work on it; None where there is no trace of one.

    Raises:
        MigrationError: its process is alive, or on another machine where that cannot be told.
    """
    state = find_state(hive, storage, database, name, backup_name)
    if state is None or (state.is_done and not _is_being_taken_back(storage, state)):
        return state
    if state.journal is not None and state.folder is not None:
        worker = read_rollback_note(storage, state.folder) or state.journal.worker
        if worker != Worker.this_process() and worker.may_be_alive() and not take_over:
            raise MigrationError(
                f"Process {worker.pid} on host {worker.host} began to migrate {database}.{name}, or to take it back, "
                f"and may still be at work (journal: {journal_location(state.folder)}). Wait for its end; if you are "
                "sure that it is dead, run the same command with --take-over."
            )
        remove_rollback_note(storage, state.folder)
        logger.info("Taking over %s.%s from process %d on %s", database, name, worker.pid, worker.host)
    return _settled(hive, storage, database, name, backup_name)


def _is_being_taken_back(storage: Storage, state: MigrationState) -> bool:
    return state.folder is not None and read_rollback_note(storage, state.folder) is not None


def _settled(
    hive: HiveTables, storage: Storage, database: str, name: str, backup_name: str | None
) -> MigrationState | None:
    """The state once it stands still: the metastore may still be at work on what a killed process had asked for."""
    state = find_state(hive, storage, database, name, backup_name)
    since, started = time.monotonic(), time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS and time.monotonic() - started < 20 * SETTLED_SECONDS:
        time.sleep(SETTLED_SECONDS / 5)
        found = find_state(hive, storage, database, name, backup_name)
        if found != state:
            state, since = found, time.monotonic()
    return state
