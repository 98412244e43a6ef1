"""Turns a migrated table back into the Hive table that it was."""

from __future__ import annotations

import enum
import logging
from dataclasses import dataclass

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    IcebergError,
    InvalidInputError,
    MetastoreError,
    MetastoreUnavailableError,
    MigrationError,
    NoSuchTableError,
)
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveTable
from hms_iceberg.metastore_names import table_identifier
from hms_iceberg.migration.handback.given_files import give, take_away
from hms_iceberg.migration.handback.given_note import GivenNote, read_note
from hms_iceberg.migration.handback.handback_plan import Handback, plan_handback
from hms_iceberg.migration.hive.source_files import list_files
from hms_iceberg.migration.hive.source_reasons import table_location
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.migration.recovery import Recovery, only_one
from hms_iceberg.migration.state import MIGRATION_ORIGINAL, MigrationState, Original, staging_name
from hms_iceberg.table import Table

logger = logging.getLogger(__name__)

_THREADS = 16
_ROUNDS = 5


@dataclass(frozen=True)
class RollbackResult:
    """What was put back.

    Attributes:
        table: name of the table, which is a Hive table again.
        files: how many data files it has; None if only the traces of an unfinished migration were removed.
        discarded_snapshots: how many snapshots the Iceberg table had gained since its migration.
        appended_files: how many of the files were appended since the migration, and copied for Hive.
        unresolved_ms: milliseconds for which the name was nobody's, at most.
    """

    table: str
    files: int | None
    discarded_snapshots: int = 0
    unresolved_ms: float = 0.0
    appended_files: int = 0


def rollback(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    *,
    backup_name: str | None = None,
    discard_changes: bool = False,
    as_hive: bool = False,
    take_over: bool = False,
    progress: Progress = silent,
) -> RollbackResult:
    """Put the Hive table back under its name, after a migration or in the middle of one.

    The Iceberg table's metadata is deleted; data files that were added to it stay where they are, and are not part of
    the Hive table, unless they are copied for it.

    Args:
        catalog: the catalog on whose metastore the table is.
        identifier: `"db.table"` or `("db", "table")`.
        backup_name: name of the Hive table, if it is not the default one.
        discard_changes: go back although the Iceberg table was changed since its migration.
        as_hive: copy what was appended since into the Hive table's folders, with the partitions that it lacks.
        take_over: go on although the process that began an unfinished migration may still live.
        progress: told how far it is.

    Raises:
        MigrationError: the table was not migrated by this package, was changed since, or files of the Hive table are
            gone; nothing was changed.
        UnsupportedError: as a Hive table it would not have the same rows (deletes, renames, other formats or specs);
            nothing was changed.
        NoSuchTableError: no table of that name, and no trace of a migration.
    """
    if discard_changes and as_hive:
        raise InvalidInputError("Changes are either discarded or handed back as Hive files. Choose one.")
    database, name = (part.lower() for part in table_identifier(identifier))
    hive = HiveTables.of(catalog.metastore)
    changes = _Changes.COPY if as_hive else _Changes.DISCARD if discard_changes else _Changes.REFUSE
    recovery = Recovery(hive, catalog.storage, database, name, backup_name)
    with only_one(database, name):
        state = recovery.take_up(take_over)
        if state is None:
            raise _nothing_to_undo(hive.find(database, name), f"{database}.{name}")
        if state.is_done:
            return _Rollback(catalog, hive, recovery, state, changes, progress).run()
        begun = recovery.begin_to_take_back(state)
        try:
            if recovery.put_back(discard_history=begun or discard_changes):
                return RollbackResult(f"{database}.{name}", files=None)
        except IcebergError:
            recovery.forget_to_take_back(state)
            raise
        state = recovery.settled()  # the metastore did just now what an earlier run had asked it for
        assert state is not None
        return _Rollback(catalog, hive, recovery, state, changes, progress).run()


def _nothing_to_undo(table: HiveTable | None, name: str) -> MigrationError | NoSuchTableError:
    if table is None:
        return NoSuchTableError(f"Table {name} does not exist, and there is no trace of a migration of it.")
    if table.is_iceberg:
        return MigrationError(
            f"Table {name} cannot be rolled back: it was not migrated by this package, or its migration journal is "
            "gone. Nothing was changed."
        )
    return MigrationError(f"Table {name} is a Hive table, and there is no unfinished migration of it.")


class _Changes(enum.Enum):
    """What becomes of what was written to the Iceberg table since its migration."""

    REFUSE = "refuse"
    DISCARD = "discard"
    COPY = "copy"


class _Rollback:
    def __init__(
        self,
        catalog: Catalog,
        hive: HiveTables,
        recovery: Recovery,
        state: MigrationState,
        changes: _Changes,
        progress: Progress,
    ) -> None:
        self._catalog = catalog
        self._hive = hive
        self._recovery = recovery
        self._state = state
        self._changes = changes
        self._progress = progress
        self._name = f"{state.database}.{state.name}"

    def run(self) -> RollbackResult:
        """Check, switch, tidy up."""
        state = self._state
        if state.backup is None or state.journal is None:
            raise MigrationError(
                f"Table {self._name} cannot be rolled back: the Hive table "
                f"{state.database}.{state.journal.backup if state.journal else '(unknown)'} is gone. The Iceberg table "
                "was left as it is."
            )
        self._recovery.begin_to_take_back(state)
        try:
            given = self._given(state)
            files = self._check_files(state.backup, frozenset(given.files if given else ()))
            handback, discarded, unresolved_ms = self._go_back(state, state.backup)
        except IcebergError:
            found = self._recovery.settled()
            if found is not None and found.is_done:
                self._recovery.forget_to_take_back(found)
            raise
        self._recovery.put_back(discard_history=True)
        logger.info("Table %s is a Hive table again", self._name)
        appended = len(handback.copies) if handback is not None else 0
        return RollbackResult(self._name, files + appended, discarded, unresolved_ms, appended)

    def _go_back(self, state: MigrationState, backup: HiveTable) -> tuple[Handback | None, int, float]:
        """Give the Hive table what it lacks, if that is wanted, and switch, unless the table was changed meanwhile."""
        for _ in range(_ROUNDS):
            handback = self._give(state, backup) if self._changes is _Changes.COPY else None
            with self._catalog.metastore.lease((state.database, state.name), {}) as lease:
                lease.acquire()
                table = self._catalog.load_table((state.database, state.name))
                if handback is None or table.metadata_location == handback.metadata_location:
                    discarded = self._snapshots_since(table) if handback is None else 0
                    return handback, discarded, self._switch(backup)
        raise MigrationError(
            f"Table {self._name} was written to in each of {_ROUNDS} attempts to copy what was appended. Stop its "
            "writers and run the same command again. Nothing was changed."
        )

    def _give(self, state: MigrationState, backup: HiveTable) -> Handback:
        assert state.folder is not None
        table = self._catalog.load_table((state.database, state.name))
        handback = plan_handback(self._catalog, self._hive, table, backup, self._given(state))
        give(self._hive, self._catalog.storage, state.folder, backup, handback, self._progress)
        return handback

    def _given(self, state: MigrationState) -> GivenNote | None:
        """What an earlier attempt gave the Hive table; only another way back with copies goes on with it."""
        if state.folder is None:
            return None
        if self._changes is not _Changes.COPY:
            take_away(self._hive, self._catalog.storage, state.folder, state.backup)
        return read_note(self._catalog.storage, state.folder)

    def _snapshots_since(self, table: Table) -> int:
        """How many snapshots came after the migration's own."""
        own = [snapshot for snapshot in table.metadata.snapshots if snapshot.summary.get("hive-table") == self._name]
        snapshots = len(table.metadata.snapshots) - len(own)
        current = table.current_snapshot()
        changed = snapshots > 0 or (current is not None and current.summary.get("hive-table") != self._name)
        if changed and self._changes is _Changes.REFUSE:
            raise MigrationError(
                f"Table {self._name} was changed since its migration ({snapshots} snapshots), and the Hive table would "
                "not have these changes. Run the same command with --as-hive to have what was appended copied for "
                "it, or with --discard-changes. Nothing was changed."
            )
        return snapshots

    def _check_files(self, backup: HiveTable, given: frozenset[str]) -> int:
        """Refuse a way back to a Hive table whose files Iceberg has deleted in the meantime."""
        partitions = list(self._hive.partitions(backup.database, backup.name)) if backup.partition_keys else []
        locations = _locations(backup, partitions)
        listing = list_files(self._catalog.storage, locations, _THREADS, self._progress)
        own = sum(file.location not in given for file in listing.files)
        journal = self._state.journal
        if journal is not None and own < journal.files:
            raise MigrationError(
                f"Table {self._name} cannot be rolled back: the Hive table had {journal.files} files when it was "
                f"migrated, and {journal.files - own} of them are gone (expired or compacted by "
                "Iceberg, or partitions of the backup were dropped). Nothing was changed."
            )
        return own

    def _switch(self, backup: HiveTable) -> float:
        state = self._state
        assert state.table is not None
        original = Original.from_text(backup.parameters[MIGRATION_ORIGINAL])
        if not backup.partition_keys and state.table.create_time == original.create_time:
            self._switch_in_one_step(backup, original)
            return 0.0
        if state.staging is not None:
            self._hive.drop(state.database, state.staging.name)
        staging = staging_name(state.name)
        return self._hive.rename_pair(state.database, (state.name, staging), (backup.name, state.name))

    def _switch_in_one_step(self, backup: HiveTable, original: Original) -> None:
        """The row is the Hive table's own, which the migration changed; the backup is a copy of what it was."""
        names = (self._state.database, self._state.name)
        try:
            self._hive.take_over(*names, backup.name, original.restored())
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            logger.info("Changing the columns of %s in two steps: %s", self._name, error)
            self._hive.clear_columns(*names)
            self._hive.take_over(*names, backup.name, original.restored())


def _locations(table: HiveTable, partitions: list[HivePartition]) -> list[str]:
    if table.partition_keys:
        return [partition.storage.location for partition in partitions]
    return [table_location(table)]
