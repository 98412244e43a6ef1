"""Turns a migrated table back into the Hive table that it was, as long as that table's files are kept."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable
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
from hms_iceberg.metastore import table_identifier
from hms_iceberg.migration.hive.source import list_files
from hms_iceberg.migration.hive.source_reasons import table_location
from hms_iceberg.migration.migration_journal import HandbackNote, MigrationRecord
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.migration.migration_state import (
    HIVE_TABLE,
    MIGRATION_JOURNAL,
    MIGRATION_ORIGINAL,
    MigrationState,
    Original,
    staging_name,
)
from hms_iceberg.migration.undo.handback_plan import (
    Handback,
    hand_back,
    plan_handback,
    undo_handback,
)
from hms_iceberg.migration.undo.recovery import Recovery, only_one
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot, SnapshotRef
from hms_iceberg.spec.table_properties import MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS
from hms_iceberg.storage import Places
from hms_iceberg.table import Table
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of

logger = logging.getLogger(__name__)

_THREADS = 16
_ROUNDS = 5
_EXAMPLES = 3


@dataclass(frozen=True)
class RollbackResult:
    """The result of a rollback, or the plan of a dry run.

    Attributes:
        table: name of the table, which is a Hive table again.
        files: how many data files it has; None if only the traces of an unfinished migration were removed.
        discarded_snapshots: how many snapshots the Iceberg table had gained since its migration.
        appended_files: how many of the files were appended since the migration, and copied for Hive.
        unresolved_ms: milliseconds for which no table had the name, at most.
        dry_run: whether nothing was changed.
        backup: of a dry run, the Hive table whose place is kept; empty if a migration was not finished.
        left_over: of a dry run, how many of the files the Iceberg table's present version does not have any more.
        safe_until_ms: of a dry run, milliseconds since 1970 until which no expiry of snapshots deletes these; None for
            no end.
    """

    table: str
    files: int | None
    discarded_snapshots: int = 0
    unresolved_ms: float = 0.0
    appended_files: int = 0
    dry_run: bool = False
    backup: str = ""
    left_over: int = 0
    safe_until_ms: int | None = None


def rollback(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    *,
    backup_name: str | None = None,
    discard_changes: bool = False,
    as_hive: bool = False,
    take_over: bool = False,
    dry_run: bool = False,
    progress: Progress = silent,
) -> RollbackResult:
    """Puts the Hive table back under its name, after a migration or in the middle of one.

    The Iceberg table's metadata is deleted; data files that were added to it stay where they are, and are not part of
    the Hive table, unless they are copied for it.

    Args:
        catalog: the catalog on whose metastore the table is.
        identifier: `"db.table"` or `("db", "table")`.
        backup_name: name of the Hive table, if it is not the default one.
        discard_changes: whether to go back although the Iceberg table was changed since its migration.
        as_hive: whether to copy what was appended since into the Hive table's folders, with the partitions that it
            lacks.
        take_over: whether to go on although the process that began an unfinished migration may still live.
        dry_run: whether everything is checked and nothing is changed.
        progress: is called with each stage, and how many of its parts are done.

    Returns:
        the Hive table's files; of a dry run, what it would have, and how long a rollback stays possible.

    Raises:
        MigrationError: the table was not migrated by this package, was changed since, or files of the Hive table are
            gone; nothing was changed.
        UnsupportedError: as a Hive table it would not have the same rows (deletes, renames, other formats or specs);
            nothing was changed.
        NoSuchTableError: no table of that name, and no trace of a migration.
        InvalidInputError: both `discard_changes` and `as_hive` are asked for.
    """
    if discard_changes and as_hive:
        raise InvalidInputError("Changes are either discarded or handed back as Hive files. Choose one.")
    database, name = (part.lower() for part in table_identifier(identifier))
    hive = HiveTables.of(catalog.metastore)
    changes = _Changes.REFUSE
    if as_hive:
        changes = _Changes.COPY
    elif discard_changes:
        changes = _Changes.DISCARD
    recovery = Recovery(hive, catalog.storage, database, name, backup_name)
    with only_one(database, name):
        state = recovery.find() if dry_run else recovery.take_up(take_over)
        if state is None:
            raise _nothing_to_undo(hive.find(database, name), f"{database}.{name}")
        if dry_run:
            return _Rollback(catalog, hive, recovery, state, changes, progress).look()
        if state.is_done:
            return _Rollback(catalog, hive, recovery, state, changes, progress).run()
        if state.record is not None:
            state.record.begin_to_take_back()
        try:
            if recovery.put_back(discard_changes):
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
    """The treatment, by a rollback, of rows that were written to the Iceberg table since the migration."""

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

    def look(self) -> RollbackResult:
        """Describes what `run` would do, or why it would refuse."""
        state = self._state
        if not state.is_done:
            self._recovery.refuse_if_renamed(state)
            return RollbackResult(self._name, files=None, dry_run=True)
        if state.backup is None or state.record is None:
            raise self._no_way_back(state)
        files = self._check_files(state.record, state.backup)
        table = self._catalog.load_table((state.database, state.name))
        appended, discarded = 0, 0
        if self._changes is _Changes.COPY:
            given = state.record.handback
            appended = len(plan_handback(self._catalog, self._hive, table, state.backup, given).copies)
        else:
            discarded = self._snapshots_since(table)
        found = outlook(table, state.record.read_files())
        return RollbackResult(
            self._name,
            files + appended,
            discarded,
            appended_files=appended,
            dry_run=True,
            backup=str(state.backup),
            left_over=found.left_over,
            safe_until_ms=found.safe_until_ms,
        )

    def run(self) -> RollbackResult:
        state = self._state
        record, backup = state.record, state.backup
        if backup is None or record is None:
            raise self._no_way_back(state)
        files = self._check_files(record, backup)
        record.begin_to_take_back()
        try:
            self._given(record, backup)
            handback, discarded, unresolved_ms = self._go_back(record, backup)
        except IcebergError:
            found = self._recovery.settled()
            if found is not None and found.is_done:
                self._recovery.forget_to_take_back(found)
            raise
        record.note_switched()
        self._recovery.put_back()
        logger.info("Table %s is a Hive table again", self._name)
        appended = len(handback.copies) if handback is not None else 0
        return RollbackResult(self._name, files + appended, discarded, unresolved_ms, appended)

    def _no_way_back(self, state: MigrationState) -> MigrationError:
        """The error without a rollback: the backup or the journal is gone, or the journal is of another name."""
        if state.journal is not None:
            reason = f"the Hive table {state.database}.{state.journal.backup} is gone."
        else:
            folder = state.table.parameters.get(MIGRATION_JOURNAL, "") if state.table is not None else ""
            record = MigrationRecord.find(self._catalog.storage, folder) if folder else None
            if record is None:
                reason = f"the journal of its migration{f' in {folder}' if folder else ''} is gone."
            else:
                name = record.journal.name
                reason = f"it was called {name} when it was migrated. Rename it to that, and roll that back."
        return MigrationError(f"Table {self._name} cannot be rolled back: {reason} Nothing was changed.")

    def _go_back(self, record: MigrationRecord, backup: HiveTable) -> tuple[Handback | None, int, float]:
        """Gives the Hive table the missing rows if wanted, and switches names, unless the table changed meanwhile."""
        state = self._state
        if state.staging is not None:  # a row that a migration left; one of this name shows the switch from now on
            self._hive.drop(state.database, state.staging.name)
        for _ in range(_ROUNDS):
            handback = self._give(record, backup) if self._changes is _Changes.COPY else None
            with self._catalog.metastore.lease((state.database, state.name), {}) as lease:
                lease.acquire()
                table = self._catalog.load_table((state.database, state.name))
                if handback is None or table.metadata_location == handback.metadata_location:
                    discarded = self._snapshots_since(table) if handback is None else 0
                    record.give_up(table.metadata_location)
                    return handback, discarded, self._switch(backup)
        raise MigrationError(
            f"Table {self._name} was written to in each of {_ROUNDS} attempts to copy what was appended. Stop its "
            "writers and run the same command again. Nothing was changed."
        )

    def _give(self, record: MigrationRecord, backup: HiveTable) -> Handback:
        table = self._catalog.load_table((self._state.database, self._state.name))
        handback = plan_handback(self._catalog, self._hive, table, backup, self._given(record, backup))
        hand_back(self._hive, record, backup, handback, self._progress)
        return handback

    def _given(self, record: MigrationRecord, backup: HiveTable) -> HandbackNote | None:
        """The note of what an earlier attempt gave the Hive table, which is undone unless this rollback copies too."""
        if self._changes is not _Changes.COPY:
            undo_handback(self._hive, record, backup)
        return record.handback

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

    def _check_files(self, record: MigrationRecord, backup: HiveTable) -> int:
        """How many files the Hive table has; refuses a rollback to a table without all that it had."""
        note = record.handback
        partitions = list(self._hive.partitions(backup.database, backup.name)) if backup.partition_keys else []
        listing = list_files(record.storage, _locations(backup, partitions), _THREADS, self._progress)
        there = {file.location: file.size for file in listing.files}
        had = record.read_files()
        gone = [location for location, size in had.items() if there.get(location) != size]
        if gone:
            raise MigrationError(
                f"Table {self._name} cannot be rolled back: of the {len(had)} files that it had as a Hive table, "
                f"{len(gone)} are gone or were replaced (expired or compacted by Iceberg, written anew by Hive, or "
                f"their partition was dropped from {backup}). Nothing was changed. The first are: "
                f"{', '.join(gone[:_EXAMPLES])}"
            )
        return len(there.keys() - set(note.files if note else ()))

    def _switch(self, backup: HiveTable) -> float:
        state = self._state
        assert state.table is not None
        original = Original.from_text(backup.parameters[MIGRATION_ORIGINAL])
        if not backup.partition_keys and state.table.create_time == original.create_time:
            self._switch_in_one_step(backup, original)
            return 0.0
        staging = staging_name(state.name)
        return self._hive.rename_pair(state.database, (state.name, staging), (backup.name, state.name))

    def _switch_in_one_step(self, backup: HiveTable, original: Original) -> None:
        """Restores the Hive table's own row, which the migration changed; the backup is a copy of the original."""
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


# -------------------------------------------------------------------------------------------------- for how long


_ALWAYS = 2**63 - 1  # which Iceberg takes for an age without end


@dataclass(frozen=True)
class Outlook:
    """How long the files of the Hive table are kept."""

    left_over: int  # how many of them the Iceberg table's present version does not have any more
    # milliseconds since 1970 until which no expiry by the table's own settings deletes one of these, because the
    # migration's own snapshot is kept; None if no time ends that
    safe_until_ms: int | None


def outlook(table: Table, files: Iterable[str]) -> Outlook:
    """How many of the Hive table's files only older snapshots have, and until when no expiry deletes those."""
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    entries = (entry for manifest in manifests for entry in entries_of(manifest, table.storage))
    places = Places(table.storage)
    live = {places.anywhere(entry.data_file.file_path) for entry in entries if entry.is_live}
    left_over = sum(places.anywhere(location) not in live for location in files)
    return Outlook(left_over, _safe_until(table) if left_over else None)


def _safe_until(table: Table) -> int | None:
    """When the migration's own snapshot may be expired, which has all of the files; 0 if it was."""
    metadata = table.metadata
    times = [kept_until(metadata, each) for each in metadata.snapshots if HIVE_TABLE in each.summary]
    latest = max(times, default=0)
    return None if latest >= _ALWAYS else latest


def kept_until(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """Milliseconds since 1970 until which a snapshot survives every expiry, 2^63 - 1 or more for no end;
    `min-snapshots-to-keep` does not count, as later commits use it up. Source: specification, "Snapshot Retention
    Policy"."""
    age = MAX_SNAPSHOT_AGE_MS.of(metadata.properties)
    age_of_refs = MAX_REF_AGE_MS.of(metadata.properties)
    until, known_until = 0, 0
    for name, ref in metadata.refs.items():
        line = _down_to(metadata, ref, snapshot)
        if line:
            of_ref = age_of_refs if ref.max_ref_age_ms is None else ref.max_ref_age_ms
            ends = _ALWAYS if name == MAIN_BRANCH else line[0].timestamp_ms + of_ref
            of_branch = age if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms
            # An expiry goes down a branch as far as the first snapshot that is too old.
            oldest = min(each.timestamp_ms for each in line) + of_branch
            until = max(until, min(ends, oldest) if ref.is_branch else ends)
            known_until = max(known_until, ends)
    # What no branch and no tag has is kept by its own age.
    return max(until, snapshot.timestamp_ms + age) if until >= known_until else until


def _down_to(metadata: TableMetadata, ref: SnapshotRef, snapshot: Snapshot) -> list[Snapshot]:
    """The snapshots from a branch's head, or of a tag, down to one; empty if it is not there."""
    line = []
    for each in metadata.ancestors_of(ref.snapshot_id):
        line.append(each)
        if each.snapshot_id == snapshot.snapshot_id:
            return line
        if not ref.is_branch:
            break
    return []
