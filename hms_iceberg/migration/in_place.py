"""Makes the Iceberg table of a migration over the files of the Hive table, where they are."""

from __future__ import annotations

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MigrationError
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.migration.hive.source_reasons import partition_key
from hms_iceberg.migration.migration_journal import Journal
from hms_iceberg.migration.migration_plan import MigrationPlan, MigrationPlanner
from hms_iceberg.migration.migration_state import HIVE_TABLE, MIGRATION_JOURNAL
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import METADATA_PATH, metadata_folder
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.needed_by_others import MIGRATION_ID
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of


class InPlace:
    """A method to migrate; see `hms_iceberg.migration.migrate.MigrationMethod`."""

    name = "in place"

    def __init__(self, catalog: Catalog, planner: MigrationPlanner) -> None:
        self._catalog = catalog
        self._storage = catalog.storage
        self._planner = planner

    def plan(self, table: HiveTable) -> MigrationPlan:
        return self._planner.plan(table)

    def is_current(self, plan: MigrationPlan, table: HiveTable) -> bool:
        return self._planner.is_current(plan, table)

    def stage(self, plan: MigrationPlan, journal: Journal) -> Table:
        transaction = self._catalog.create_table_transaction(
            (journal.database, journal.staging),
            schema=plan.schema,
            location=plan.source.location,
            partition_spec=plan.spec,
            properties={
                **plan.properties,
                MIGRATION_ID: journal.migration_id,
                MIGRATION_JOURNAL: plan.journal_folder,
            },
        )
        transaction.name_files_after(journal.migration_id)
        try:
            self._check_draft(transaction.metadata, plan)
        except MigrationError:
            transaction.abandon()
            raise
        with transaction:
            if plan.data_files:
                transaction.add_data_files(plan.data_files, {HIVE_TABLE: journal.name})
        table = self._catalog.load_table((journal.database, journal.staging))
        self._read_back(table, plan)
        return table

    def _check_draft(self, metadata: TableMetadata, plan: MigrationPlan) -> None:
        folder = metadata_folder(metadata.location, metadata.properties)
        if folder != plan.journal_folder:
            raise MigrationError(
                f"The property {METADATA_PATH.name} (of the table, or a default of the catalog) puts the metadata into "
                f"{folder}, and a migration needs it in {plan.journal_folder}. Set it after the migration."
            )
        if metadata.schema().as_struct() != plan.schema.as_struct():
            raise MigrationError("The columns were numbered differently from the metrics. Please report this.")

    def _read_back(self, table: Table, plan: MigrationPlan) -> None:
        """Checks that the new metadata can be read and lists every file, before it is used."""
        manifests = manifest_list_of(table.current_snapshot(), self._storage)
        found = {
            (entry.data_file.file_path, partition_key(entry.data_file.partition), entry.data_file.record_count)
            for manifest in manifests
            for entry in entries_of(manifest, self._storage)
        }
        if found != {(file.file_path, partition_key(file.partition), file.record_count) for file in plan.data_files}:
            raise MigrationError(
                f"The Iceberg metadata at {table.metadata_location} does not hold the files that were found: expected "
                f"{len(plan.data_files)}, got {len(found)}. Nobody has used it; please report this."
            )
