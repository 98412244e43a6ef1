"""Turns a Hive table into an Iceberg table in place.

No file is moved, copied or rewritten. Everything slow and everything that can fail comes before the switch: the Iceberg
table is made complete under a name of its own, at the Hive table's location. The switch itself is

- for a table with partitions, whose keys a metastore refuses to change, a pair of renames sent together, after the Hive
  table was made external (the metastore moves the files of a managed table that is renamed);
- for a table without partitions, one change of its row, so that its name always resolves.

The Hive table stays, under the backup's name.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hms_iceberg.catalog import Catalog
from hms_iceberg.encryption.encrypted_tables import refuse_encrypted
from hms_iceberg.errors import (
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    MigrationError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.hive_tables import HiveRowChange, HiveTables, made_external
from hms_iceberg.hms.rows.hive_rows import EXTERNAL, EXTERNAL_PURGE, HiveTable
from hms_iceberg.metastore import table_identifier
from hms_iceberg.migration.hive.source import Listing
from hms_iceberg.migration.in_place import InPlace
from hms_iceberg.migration.migration_journal import Journal, MigrationRecord, new_migration_id
from hms_iceberg.migration.migration_plan import MigrationOptions, MigrationPlanner
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.migration.migration_reports import ReportedMigration
from hms_iceberg.migration.migration_state import MIGRATION_ORIGINAL, MigrationState, Original, staging_name
from hms_iceberg.migration.undo.recovery import Recovery, only_one
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.needed_by_others import MIGRATION_ID, default_backup_name

logger = logging.getLogger(__name__)

_ROUNDS = 5


@dataclass(frozen=True)
class MigrationResult:
    """The result of a migration, or the plan of a dry run.

    Attributes:
        table: name of the Iceberg table.
        backup: name of the Hive table after the migration.
        partitions, files, records, bytes: how much was migrated.
        dry_run: whether nothing was changed.
        already_done: whether an earlier run had done it, all or all but the last step.
        metadata_location: location of the Iceberg table's metadata; None for a dry run.
        snapshot_id: its snapshot; None for a dry run, or for a table without rows.
        unresolved_ms: milliseconds for which no table had the name, at most; 0 for a table without partitions.
        seconds: duration of the whole migration.
    """

    table: str
    backup: str
    partitions: int
    files: int
    records: int
    bytes: int
    dry_run: bool = False
    already_done: bool = False
    metadata_location: str | None = None
    snapshot_id: int | None = None
    unresolved_ms: float = 0.0
    seconds: float = 0.0


class Plan(Protocol):
    @property
    def table(self) -> HiveTable: ...

    @property
    def location(self) -> str: ...

    @property
    def iceberg_location(self) -> str:
        """Where the Iceberg table will be: in the same place, or in a folder of its own."""
        ...

    @property
    def journal_folder(self) -> str:
        """Where the journal goes; of a migration in place, also the Iceberg table's metadata."""
        ...

    @property
    def listing(self) -> Listing:
        """The files of the Hive table, as they were listed."""
        ...

    @property
    def is_partitioned(self) -> bool: ...

    @property
    def partition_count(self) -> int: ...

    @property
    def records(self) -> int:
        """Number of rows of the Hive table, as far as its files' footers say."""
        ...


class MigrationMethod(Protocol):
    """How the Iceberg table of a migration is made."""

    name: str
    """The name of the method in reports: `in place` or `copy`."""

    def plan(self, table: HiveTable) -> Any:
        """Plans the Iceberg table; raises UnsupportedError if that is not possible."""
        ...

    def is_current(self, plan: Any, table: HiveTable) -> bool:
        """Whether the Hive table and its files are still as they were planned."""
        ...

    def stage(self, plan: Any, journal: Journal) -> Table:
        """Makes the Iceberg table, complete and read back, under the staging name; a failure leaves nothing of it."""
        ...


Proof = Callable[[str, Table], Sequence[str]]
"""Compares a Hive table with the Iceberg table that shall take its place: the differences, in words."""


def migrate(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    options: MigrationOptions | None = None,
    *,
    dry_run: bool = False,
    proof: Proof | None = None,
    progress: Progress = silent,
) -> MigrationResult:
    """Turns a Hive table of Parquet, ORC or Avro files into an Iceberg table in place, without writing data.

    After a crash at any point, the same call finishes the migration, or undoes it and starts anew. Any other failure
    leaves the Hive table as it was.

    Args:
        catalog: the catalog on whose metastore the table is.
        identifier: `"db.table"` or `("db", "table")`.
        options: the user's choices.
        dry_run: whether everything is checked and nothing is changed.
        proof: compares the two tables before the switch; a difference stops it.
        progress: is called with each stage, and how many of its parts are done.

    Returns:
        the result of the migration, or the plan of a dry run.

    Raises:
        UnsupportedError: the table cannot be migrated; every reason is in the message, and nothing was changed.
        NoSuchTableError: no table of that name.
        TableAlreadyExistsError: the backup's name is taken.
        MigrationError: it failed; the message says in which state the table is, and what to run next.
    """
    chosen = options or MigrationOptions()
    remedy = "The files of the Hive table are plain, and stay. Copy its rows: migrate with --rewrite."
    refuse_encrypted(chosen.properties, str(identifier), "Cannot migrate in place", remedy)
    method = InPlace(catalog, MigrationPlanner(HiveTables.of(catalog.metastore), catalog.storage, chosen, progress))
    return carry_out(catalog, identifier, chosen, method, dry_run=dry_run, proof=proof)


def carry_out(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    options: MigrationOptions,
    method: MigrationMethod,
    *,
    dry_run: bool = False,
    proof: Proof | None = None,
) -> MigrationResult:
    """Migrates a table, in place or by a copy; see `migrate`."""
    migration = _Migration(catalog, identifier, options, method, proof)
    with only_one(*migration.name):
        if dry_run:
            return migration.run(dry_run)
        with ReportedMigration(".".join(migration.name), method.name) as reported:
            result = migration.run(dry_run)
        if not result.already_done:
            reported.made(result.files, result.records, result.bytes)
        return result


class _Migration:
    def __init__(
        self,
        catalog: Catalog,
        identifier: str | tuple[str, ...],
        options: MigrationOptions,
        method: MigrationMethod,
        proof: Proof | None,
    ) -> None:
        database, name = (part.lower() for part in table_identifier(identifier))
        self._catalog = catalog
        self._storage = catalog.storage
        self._hive = HiveTables.of(catalog.metastore)
        self._options = options
        self._database, self._name = database, name
        self._full_name = f"{database}.{name}"
        self._recovery = Recovery(self._hive, catalog.storage, database, name, options.backup_name)
        self._method = method
        self._proof = proof
        self._started = time.monotonic()
        self._unresolved_ms = 0.0

    @property
    def name(self) -> tuple[str, str]:
        """The table's name with its namespace."""
        return self._database, self._name

    def run(self, dry_run: bool) -> MigrationResult:
        finished = self._look_at_earlier_run() if dry_run else self._end_earlier_run()
        if finished is not None:
            return finished
        for _ in range(_ROUNDS):
            plan = self._method.plan(self._hive_table())
            self._refuse_taken_names()
            if dry_run:
                return self._result(plan, dry_run=True)
            version = self._carry_out(plan)
            if version is not None:
                result = replace(
                    self._result(plan, records=_records(version)),
                    metadata_location=version.metadata_location,
                    snapshot_id=version.metadata.current_snapshot_id,
                    unresolved_ms=self._unresolved_ms,
                )
                logger.info("Migrated %s: %d files in %.1f s", self._full_name, result.files, result.seconds)
                return result
            logger.info("Files of %s changed meanwhile; looking at it again", self._full_name)
        raise MigrationError(
            f"Table {self._full_name} was not migrated: files or partitions were added in each of {_ROUNDS} attempts. "
            "The Hive table is as it was. Stop the jobs that write to it and run the same command again."
        )

    # ------------------------------------------------------------------------------- what an earlier run left

    def _look_at_earlier_run(self) -> MigrationResult | None:
        state = self._recovery.find()
        if state is None or state.is_done:
            return None if state is None else self._finished(state)
        self._recovery.refuse_if_renamed(state)
        raise MigrationError(
            f"A migration of {self._full_name} was begun and not finished. Run it without --dry-run, or put the Hive "
            f"table back: hms-iceberg rollback-migration {self._full_name}"
        )

    def _end_earlier_run(self) -> MigrationResult | None:
        """Finishes an earlier run that was nearly done, and returns its result; undoes any other, and returns None."""
        state = self._recovery.take_up(self._options.take_over)
        if state is None:
            return None
        if state.is_between_renames:
            assert state.staging is not None
            if state.record is not None:
                state.record.forget_switched()
            try:
                self._hive.rename(self._database, state.staging.name, self._name)
                logger.info("Finished the migration of %s that an earlier run began", self._full_name)
            except (TableAlreadyExistsError, NoSuchTableError) as error:
                logger.info("The rows of %s changed meanwhile: %s", self._full_name, error)
        if self._recovery.put_back():
            return None
        state = self._recovery.find()
        assert state is not None
        self._recovery.forget_to_take_back(state)
        if state.staging is not None:
            self._hive.drop(self._database, state.staging.name)
        return self._finished(state)

    def _finished(self, state: MigrationState) -> MigrationResult:
        """The result of a migration whose switch an earlier run did."""
        table = self._catalog.load_table((self._database, self._name))
        journal, snapshot = state.journal, table.current_snapshot()
        backup = journal.backup if journal else ""
        if state.backup:
            backup = state.backup.name
        return MigrationResult(
            table=self._full_name,
            backup=f"{self._database}.{backup}",
            partitions=journal.partitions if journal else 0,
            files=journal.files if journal else 0,
            records=_records(table),
            bytes=journal.bytes if journal else 0,
            already_done=True,
            metadata_location=table.metadata_location,
            snapshot_id=snapshot.snapshot_id if snapshot else None,
            seconds=time.monotonic() - self._started,
        )

    # ----------------------------------------------------------------------------------------- the way there

    def _hive_table(self) -> HiveTable:
        row = self._hive.find(self._database, self._name)
        if row is None:
            raise NoSuchTableError(f"Table {self._full_name} does not exist in the metastore. Check its name.")
        return row

    @property
    def _backup(self) -> str:
        return (self._options.backup_name or default_backup_name(self._name)).lower()

    def _refuse_taken_names(self) -> None:
        for name, remedy in ((self._backup, "pass --backup-name"), (staging_name(self._name), "rename it")):
            if self._hive.find(self._database, name) is not None:
                raise TableAlreadyExistsError(
                    f"Cannot migrate {self._full_name}: the migration needs the name {self._database}.{name}, and a "
                    f"table has it already; {remedy}. Nothing was changed."
                )

    def _carry_out(self, plan: Plan) -> Table | None:
        """Makes the Iceberg table and switches to it; None if the Hive table changed, and all was undone."""
        record = self._begin(plan)
        journal = record.journal
        try:
            record.write_files((file.location, file.size) for file in plan.listing.files)
            table = self._method.stage(plan, journal)
            self._prove(plan, table)
            with self._catalog.metastore.lease((self._database, self._name), {}) as lease:
                lease.acquire()
                if self._method.is_current(plan, self._hive_table()):
                    self._switch(plan, journal)
                    return table
        except BaseException as error:
            self._undo_after(error)  # raises, unless the switch was made after all
            return self._catalog.load_table((self._database, self._name))
        self._recovery.put_back()
        return None

    def _prove(self, plan: Plan, table: Table) -> None:
        """Refuses to switch to an Iceberg table whose rows differ, unless the difference is rows that the Hive table
        got since."""
        found = self._proof(self._full_name, table) if self._proof is not None else ()
        if found and self._method.is_current(plan, self._hive_table()):
            raise MigrationError("the Iceberg table does not hold what the Hive table holds: " + "; ".join(found))

    def _begin(self, plan: Plan) -> MigrationRecord:
        original = Original.of(plan.table, (EXTERNAL, EXTERNAL_PURGE))
        journal = Journal(
            migration_id=new_migration_id(),
            database=self._database,
            table=self._name,
            backup=self._backup,
            staging=staging_name(self._name),
            location=plan.location,
            iceberg_location=plan.iceberg_location,
            original=original.to_json(),
            files=len(plan.listing.files),
            bytes=plan.listing.total_bytes,
            partitions=plan.partition_count,
        )
        return MigrationRecord.begin(self._storage, plan.journal_folder, journal)

    # ------------------------------------------------------------------------------------------- the switch

    def _switch(self, plan: Plan, journal: Journal) -> None:
        if not plan.is_partitioned and self._switch_in_one_step(plan, journal):
            return
        table = plan.table
        self._hive.change(self._database, self._name, made_external(_marks(table, journal)))
        self._unresolved_ms = self._hive.rename_pair(
            self._database,
            (self._name, journal.backup),
            (journal.staging, self._name),
            HiveRowChange({}, owner=table.owner),
        )

    def _switch_in_one_step(self, plan: Plan, journal: Journal) -> bool:
        """Changes the row; False if the metastore refuses, and everything is as before."""
        table = plan.table
        self._hive.copy(self._database, self._name, journal.backup, made_external(_marks(table, journal)))
        try:
            change = HiveRowChange({}, owner=table.owner)
            self._hive.take_over(self._database, self._name, journal.staging, change)
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            # Hive 3 and newer refuse to change a column's type in place unless told otherwise.
            logger.info("Using renames for %s, as its row cannot be changed: %s", self._full_name, error)
            self._hive.drop(self._database, journal.backup)
            return False
        self._hive.drop(self._database, journal.staging)
        return True

    # ---------------------------------------------------------------------------------------------- failure

    def _undo_after(self, error: BaseException) -> None:
        """After a failure, undoes everything and raises; returns only if the switch was made after all."""
        try:
            if isinstance(error, MetastoreAnswerLostError) or not isinstance(error, Exception):
                self._recovery.settled()  # a change may be under way
            if not self._recovery.put_back():
                logger.warning("The migration of %s was done, in spite of: %s", self._full_name, error)
                if isinstance(error, Exception):
                    return
                raise error
        except Exception as second:
            raise MigrationError(
                f"The migration of {self._full_name} failed ({error}), and putting the Hive table back failed too "
                f"({second}). No file was moved or deleted. When the metastore answers again, run the same command "
                f"again, or put the Hive table back: hms-iceberg rollback-migration {self._full_name}"
            ) from error
        if not isinstance(error, Exception):
            raise error
        raise MigrationError(
            f"The migration of {self._full_name} failed, and the Hive table is as it was: {error}"
        ) from error

    def _result(self, plan: Plan, dry_run: bool = False, records: int | None = None) -> MigrationResult:
        return MigrationResult(
            table=self._full_name,
            backup=f"{self._database}.{self._backup}",
            partitions=plan.partition_count,
            files=len(plan.listing.files),
            records=plan.records if records is None else records,
            bytes=plan.listing.total_bytes,
            dry_run=dry_run,
            seconds=time.monotonic() - self._started,
        )


def _records(table: Table) -> int:
    snapshot = table.current_snapshot()
    return int(snapshot.summary.get("total-records", "0")) if snapshot else 0


def _marks(table: HiveTable, journal: Journal) -> dict[str, str | None]:
    original = Original.of(table, (EXTERNAL, EXTERNAL_PURGE))
    return {MIGRATION_ID: journal.migration_id, MIGRATION_ORIGINAL: original.to_text()}
