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
from dataclasses import dataclass, replace

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    MigrationError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.hive_tables import HiveTables, RowChange, made_external
from hms_iceberg.hms.rows.hive_rows import EXTERNAL, EXTERNAL_PURGE, HiveTable
from hms_iceberg.metastore_names import table_identifier
from hms_iceberg.migration.journal import Journal, new_migration_id, write_journal
from hms_iceberg.migration.migration_plan import MigrationOptions, MigrationPlan, MigrationPlanner
from hms_iceberg.migration.progress import Progress, silent
from hms_iceberg.migration.recovery import Recovery, only_one
from hms_iceberg.migration.state import (
    MIGRATION_ID,
    MIGRATION_ORIGINAL,
    MigrationState,
    Original,
    default_backup_name,
    staging_name,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import METADATA_PATH, metadata_folder
from hms_iceberg.table import Table
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of

logger = logging.getLogger(__name__)

_ROUNDS = 5


@dataclass(frozen=True)
class MigrationResult:
    """What a migration did, or (a dry run) would do.

    Attributes:
        table: name of the Iceberg table.
        backup: name of the Hive table after the migration.
        partitions, files, records, bytes: what was taken in.
        dry_run: nothing was changed.
        already_done: an earlier run had done it, all or all but the last step.
        metadata_location: location of the Iceberg table's metadata; None for a dry run.
        snapshot_id: its snapshot; None for a dry run, or for a table without rows.
        unresolved_ms: milliseconds for which the name was nobody's, at most; 0 for a table without partitions.
        seconds: how long it all took.
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


def migrate(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    options: MigrationOptions | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> MigrationResult:
    """Turn a Hive table of Parquet files into an Iceberg table in place, without writing data.

    After a crash at any point, the same call finishes the migration, or undoes it and starts anew. Any other failure
    leaves the Hive table as it was.

    Args:
        catalog: the catalog on whose metastore the table is.
        identifier: `"db.table"` or `("db", "table")`.
        options: what the user may choose.
        dry_run: check everything and change nothing.
        progress: told how far it is.

    Returns:
        What was done.

    Raises:
        UnsupportedError: the table cannot be migrated; every reason is in the message, and nothing was changed.
        NoSuchTableError: no table of that name.
        TableAlreadyExistsError: the backup's name is taken.
        MigrationError: it failed; the message says in which state the table is, and what to run next.
    """
    migration = _Migration(catalog, identifier, options or MigrationOptions(), progress)
    with only_one(*migration.name):
        return migration.run(dry_run)


class _Migration:
    def __init__(
        self, catalog: Catalog, identifier: str | tuple[str, ...], options: MigrationOptions, progress: Progress
    ) -> None:
        database, name = (part.lower() for part in table_identifier(identifier))
        self._catalog = catalog
        self._storage = catalog.storage
        self._hive = HiveTables.of(catalog.metastore)
        self._options = options
        self._database, self._name = database, name
        self._full_name = f"{database}.{name}"
        self._recovery = Recovery(self._hive, catalog.storage, database, name, options.backup_name)
        self._planner = MigrationPlanner(self._hive, catalog.storage, options, progress)
        self._started = time.monotonic()
        self._unresolved_ms = 0.0

    @property
    def name(self) -> tuple[str, str]:
        """Database and table."""
        return self._database, self._name

    def run(self, dry_run: bool) -> MigrationResult:
        """The whole migration."""
        finished = self._look_at_earlier_run() if dry_run else self._end_earlier_run()
        if finished is not None:
            return finished
        for _ in range(_ROUNDS):
            plan = self._planner.plan(self._hive_table())
            self._refuse_taken_names()
            if dry_run:
                return self._result(plan, dry_run=True)
            version = self._carry_out(plan)
            if version is not None:
                result = replace(
                    self._result(plan),
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
        raise MigrationError(
            f"A migration of {self._full_name} was begun and not finished. Run it without --dry-run, or put the Hive "
            f"table back: hms-iceberg rollback-migration {self._full_name}"
        )

    def _end_earlier_run(self) -> MigrationResult | None:
        """The result where the table is migrated already, or can be with one more step; else undoes what was begun."""
        state = self._recovery.take_up(self._options.take_over)
        if state is None:
            return None
        if state.is_between_renames:
            assert state.staging is not None
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
        backup = state.backup.name if state.backup else (journal.backup if journal else "")
        return MigrationResult(
            table=self._full_name,
            backup=f"{self._database}.{backup}",
            partitions=journal.partitions if journal else 0,
            files=journal.files if journal else 0,
            records=int(snapshot.summary.get("total-records", "0")) if snapshot else 0,
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

    def _carry_out(self, plan: MigrationPlan) -> Table | None:
        """Make the Iceberg table and switch to it; None where the Hive table changed meanwhile, and all is undone."""
        journal = self._begin(plan)
        try:
            table = self._stage(plan, journal)
            with self._catalog.metastore.lease((self._database, self._name), {}) as lease:
                lease.acquire()
                if self._planner.is_current(plan, self._hive_table()):
                    self._switch(plan, journal)
                    return table
        except BaseException as error:
            self._undo_after(error)  # raises, unless the switch was made after all
            return self._catalog.load_table((self._database, self._name))
        self._recovery.put_back()
        return None

    def _begin(self, plan: MigrationPlan) -> Journal:
        table, folder = plan.source.table, plan.metadata_folder
        existing = tuple(info.location[len(folder) + 1 :] for info in self._storage.list(folder))
        original = Original.of(table, (EXTERNAL, EXTERNAL_PURGE))
        journal = Journal(
            migration_id=new_migration_id(),
            database=self._database,
            table=self._name,
            backup=self._backup,
            staging=staging_name(self._name),
            location=plan.source.location,
            original=original.to_json(),
            files=len(plan.listing.files),
            bytes=plan.listing.total_bytes,
            partitions=len(plan.source.partitions) if plan.source.is_partitioned else 0,
            existing=existing,
        )
        write_journal(self._storage, folder, journal)
        return journal

    def _stage(self, plan: MigrationPlan, journal: Journal) -> Table:
        """The Iceberg table, complete, under the staging name."""
        transaction = self._catalog.create_table_transaction(
            (self._database, journal.staging),
            schema=plan.schema,
            location=plan.source.location,
            partition_spec=plan.spec,
            properties={**plan.properties, MIGRATION_ID: journal.migration_id},
        )
        try:
            self._check_draft(transaction.metadata, plan)
        except MigrationError:
            transaction.abandon()
            raise
        with transaction:
            if plan.data_files:
                transaction.add_data_files(plan.data_files, {"hive-table": self._full_name})
        table = self._catalog.load_table((self._database, journal.staging))
        self._read_back(table, plan)
        return table

    def _check_draft(self, metadata: TableMetadata, plan: MigrationPlan) -> None:
        folder = metadata_folder(metadata.location, metadata.properties)
        if folder != plan.metadata_folder:
            raise MigrationError(
                f"The property {METADATA_PATH} (of the table, or a default of the catalog) puts the metadata into "
                f"{folder}, and a migration needs it in {plan.metadata_folder}. Set it after the migration."
            )
        if metadata.schema().as_struct() != plan.schema.as_struct():
            raise MigrationError("The columns were numbered differently from the metrics. Please report this.")

    def _read_back(self, table: Table, plan: MigrationPlan) -> None:
        """Check that what was written can be read, and holds every file, before anybody depends on it."""
        manifests = manifest_list_of(table.current_snapshot(), self._storage)
        found = {
            (entry.data_file.file_path, entry.data_file.partition, entry.data_file.record_count)
            for manifest in manifests
            for entry in entries_of(manifest, self._storage)
        }
        if found != {(file.file_path, file.partition, file.record_count) for file in plan.data_files}:
            raise MigrationError(
                f"The Iceberg metadata at {table.metadata_location} does not hold the files that were found: expected "
                f"{len(plan.data_files)}, got {len(found)}. Nobody has used it; please report this."
            )

    # ------------------------------------------------------------------------------------------- the switch

    def _switch(self, plan: MigrationPlan, journal: Journal) -> None:
        if not plan.source.is_partitioned and self._switch_in_one_step(plan, journal):
            return
        table = plan.source.table
        self._hive.change(self._database, self._name, made_external(_marks(table, journal)))
        self._unresolved_ms = self._hive.rename_pair(
            self._database,
            (self._name, journal.backup),
            (journal.staging, self._name),
            RowChange({}, owner=table.owner),
        )

    def _switch_in_one_step(self, plan: MigrationPlan, journal: Journal) -> bool:
        """Change the row; False where the metastore refuses, and everything is as before."""
        table = plan.source.table
        self._hive.copy(self._database, self._name, journal.backup, made_external(_marks(table, journal)))
        try:
            change = RowChange({}, owner=table.owner)
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
        """After a failure: undo everything and raise; return only where the switch was made after all."""
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

    def _result(self, plan: MigrationPlan, dry_run: bool = False) -> MigrationResult:
        return MigrationResult(
            table=self._full_name,
            backup=f"{self._database}.{self._backup}",
            partitions=len(plan.source.partitions) if plan.source.is_partitioned else 0,
            files=len(plan.data_files),
            records=plan.records,
            bytes=plan.listing.total_bytes,
            dry_run=dry_run,
            seconds=time.monotonic() - self._started,
        )


def _marks(table: HiveTable, journal: Journal) -> dict[str, str | None]:
    original = Original.of(table, (EXTERNAL, EXTERNAL_PURGE))
    return {MIGRATION_ID: journal.migration_id, MIGRATION_ORIGINAL: original.to_text()}
