"""Migrates a Hive table that cannot stay where it is: Spark copies its rows into an Iceberg table.

Names are switched as of a migration in place, with the same journal and the same rollback. The copy has a new folder
beside the Hive table's; the journal lies in a hidden one below it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CorruptDataFileError, InvalidInputError, MigrationError, UnsupportedError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import VIEWS, HivePartition, HiveTable
from hms_iceberg.migration.hive.format_footers import AVRO, PARQUET, format_of, read_source_footer
from hms_iceberg.migration.hive.source import Listing, SourceFile, carried_parameters, list_files
from hms_iceberg.migration.hive.source_reasons import TRANSACTIONAL, reasons_against_spark, table_location
from hms_iceberg.migration.migrate import MigrationResult, Proof, carry_out
from hms_iceberg.migration.migration_journal import Journal
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.migration_progress import in_threads, silent
from hms_iceberg.migration.migration_state import HIDDEN_METADATA, HIVE_TABLE, METADATA, MIGRATION_JOURNAL
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import METADATA_PATH
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.needed_by_others import MIGRATION_ID

logger = logging.getLogger(__name__)


class CopyRows(Protocol):
    """Copies rows from a Hive table into an Iceberg table: Spark."""

    def schema(self, table: str) -> Schema:
        """A Hive table's columns, as its rows are read; raises UnsupportedError if they cannot be."""
        ...

    def copy(self, source: str, target: str, snapshot_properties: Mapping[str, str]) -> None:
        """Appends all rows of a Hive table to an Iceberg table, in one snapshot with these properties."""
        ...


@dataclass(frozen=True)
class CopyPlan:
    """A Hive table that is copied; its schema is that of the rows as they are read, `iceberg_location` a new folder."""

    table: HiveTable
    partitions: tuple[HivePartition, ...]
    listing: Listing
    schema: Schema
    iceberg_location: str
    records: int = 0

    @property
    def location(self) -> str:
        return table_location(self.table)

    @property
    def journal_folder(self) -> str:
        return f"{self.location}/{HIDDEN_METADATA}"

    @property
    def is_partitioned(self) -> bool:
        return bool(self.table.partition_keys)

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


def rewrite(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    options: MigrationOptions | None = None,
    *,
    rows: CopyRows,
    dry_run: bool = False,
    proof: Proof | None = None,
) -> MigrationResult:
    """Turns a Hive table of any format that Spark reads into an Iceberg table, by copying its rows with `rows`; after a
    crash or failure as `migrate`, whose options about files and types have no meaning here."""
    chosen = options or MigrationOptions()
    return carry_out(catalog, identifier, chosen, _Copy(catalog, chosen, rows), dry_run=dry_run, proof=proof)


class _Copy:
    """A method to migrate; see `hms_iceberg.migration.migrate.MigrationMethod`."""

    name = "copy"

    def __init__(self, catalog: Catalog, options: MigrationOptions, rows: CopyRows) -> None:
        self._catalog = catalog
        self._hive = HiveTables.of(catalog.metastore)
        self._options = options
        self._rows = rows

    def plan(self, table: HiveTable) -> CopyPlan:
        reason = _reason_against(table)
        if reason is not None:
            raise _refused(table, reason)
        partitions, listing = self._look(table)
        if listing.transactional:
            raise _refused(table, f"file {listing.transactional} is of {TRANSACTIONAL}")
        reason = next(filter(None, self._misread(table, partitions, listing)), None)
        if reason is not None:
            raise _refused(table, reason)
        return CopyPlan(table, partitions, listing, self._rows.schema(str(table)), self._new_folder(table))

    def _misread(
        self, table: HiveTable, partitions: tuple[HivePartition, ...], listing: Listing
    ) -> Iterator[str | None]:
        """For each file, why Spark would silently read other values than Hive; None if it reads the same."""

        def misread(file: SourceFile) -> str | None:
            file_format = format_of(table, partitions[file.partition] if partitions else None)
            if file_format not in (PARQUET, AVRO):
                return None
            try:
                footer = read_source_footer(self._catalog.storage, file.location, file_format)
            except (CorruptDataFileError, UnsupportedError) as error:
                logger.info("Left to Spark: %s", error)
                return None
            return f"file {file.location} {footer.problems[0]}." if footer.misread_by_spark else None

        return in_threads(misread, listing.files, self._options.threads)

    def _new_folder(self, table: HiveTable) -> str:
        """An empty folder: others may live in every folder whose name can be known beforehand."""
        while True:
            folder = f"{table_location(table)}__iceberg_{secrets.token_hex(4)}"
            if not any(True for _ in self._catalog.storage.list(folder)):
                return folder

    def is_current(self, plan: CopyPlan, table: HiveTable) -> bool:
        partitions, listing = self._look(table)
        rows = [(each.columns, each.partition_keys, each.storage) for each in (table, plan.table)]
        same_partitions = {each.values for each in partitions} == {each.values for each in plan.partitions}
        return rows[0] == rows[1] and same_partitions and set(listing.files) == set(plan.listing.files)

    def _look(self, table: HiveTable) -> tuple[tuple[HivePartition, ...], Listing]:
        partitions = tuple(self._hive.partitions(table.database, table.name)) if table.partition_keys else ()
        places = [row.storage.location for row in partitions] if table.partition_keys else [table_location(table)]
        return partitions, list_files(self._catalog.storage, places, self._options.threads, silent)

    def stage(self, plan: CopyPlan, journal: Journal) -> Table:
        name = (journal.database, journal.staging)
        table = self._catalog.create_table(
            name,
            schema=plan.schema,
            location=plan.iceberg_location,
            partition_spec=_spec(plan.table, plan.schema),
            properties={
                **carried_parameters(plan.table.parameters),
                **self._options.properties,
                MIGRATION_ID: journal.migration_id,
                MIGRATION_JOURNAL: plan.journal_folder,
            },
        )
        folder = table.metadata_location.rpartition("/")[0]
        if folder != f"{plan.iceberg_location}/{METADATA}":
            raise MigrationError(
                f"The property {METADATA_PATH.name} (of the table, or a default of the catalog) puts the metadata into "
                f"{folder}, and a copy needs all of it in {plan.iceberg_location}. Set it after the migration."
            )
        if plan.listing.files:
            self._rows.copy(journal.name, ".".join(name), {HIVE_TABLE: journal.name})
        table = self._catalog.load_table(name)
        if len(table.metadata.snapshots) > 1:
            raise MigrationError(f"the copy {'.'.join(name)} was written to by somebody else.")
        return table


def _refused(table: HiveTable, reason: str) -> UnsupportedError:
    return UnsupportedError(f"Table {table} cannot be rewritten as an Iceberg table: {reason} Nothing was changed.")


def _reason_against(table: HiveTable) -> str | None:
    if table.is_iceberg:
        return "it is an Iceberg table already."
    if table.table_type in VIEWS:
        return "it is a view; migrate the tables below it."
    if table.parameters.get("transactional", "").lower() == "true":
        return f"it is {TRANSACTIONAL}"
    if not table_location(table):
        return "it has no location."
    return next((reason.text for reason in reasons_against_spark(table)), None)


def _spec(table: HiveTable, schema: Schema) -> PartitionSpec:
    fields = []
    for number, key in enumerate(table.partition_keys):
        found = next((field for field in schema.fields if field.name.lower() == key.name.lower()), None)
        if found is None:
            raise InvalidInputError(f"Spark does not show the partition column {key.name!r} of {table}.")
        fields.append(
            PartitionField(found.field_id, PARTITION_FIELD_ID_START + number, IdentityTransform(), found.name)
        )
    return PartitionSpec(*fields)
