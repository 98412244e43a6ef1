"""An Iceberg table over the files of a Hive table, which stays as it is: to try things out, or to move step by step.

Source: Iceberg documentation, "Spark Procedures", `snapshot`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError, NoSuchTableError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.metastore import table_identifier
from hms_iceberg.migration.migration_plan import MigrationOptions, MigrationPlanner
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.spec.table_properties import DATA_PATH, GC_ENABLED, METADATA_PATH
from hms_iceberg.table import Table

# Where a migrated table without partitions keeps its own files; a snapshot has a folder of its own.
_OF_MIGRATED_TABLES = (METADATA_PATH.name, DATA_PATH.name)


@dataclass(frozen=True)
class SnapshotResult:
    """The Iceberg table that was made, and how many files, rows and bytes of the Hive table it has.

    Attributes:
        table: the Iceberg table.
        files, records, bytes: its share of the Hive table.
    """

    table: Table
    files: int
    records: int
    bytes: int


def snapshot(
    catalog: Catalog,
    source: str | tuple[str, ...],
    target: str | tuple[str, ...],
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    options: MigrationOptions | None = None,
    progress: Progress = silent,
) -> SnapshotResult:
    """Makes an Iceberg table that reads the files of a Hive table; what is written to it goes to a folder of its own.

    The Hive table and its files are not touched. The new table does not own the files: its property `gc.enabled` is
    false, so that no action on it deletes them. Files that the Hive table loses later are missing in it.

    Args:
        catalog: the catalog on whose metastore the Hive table is.
        source: the Hive table, `"db.table"` or `("db", "table")`.
        target: the new table.
        location: its folder, by default what the catalog says; not that of the Hive table, below or above it.
        properties: of the new table.
        options: how types and files are taken, as of a migration.
        progress: is called with each stage, and how many of its parts are done.

    Returns:
        the new table, and how many files, rows and bytes of the Hive table it has.

    Raises:
        UnsupportedError: the table cannot be read as Iceberg; every reason is in the message, and nothing was made.
        NoSuchTableError: there is no such Hive table.
        TableAlreadyExistsError: the target's name is taken.
        InvalidInputError: the location overlaps that of the Hive table.
    """
    database, name = (part.lower() for part in table_identifier(source))
    hive = HiveTables.of(catalog.metastore)
    row = hive.find(database, name)
    if row is None:
        raise NoSuchTableError(f"Table {database}.{name} does not exist in the metastore. Check its name.")
    given = options or MigrationOptions()
    plan = MigrationPlanner(hive, catalog.storage, given, progress).plan(row)
    transaction = catalog.create_table_transaction(
        target,
        schema=plan.schema,
        location=location,
        partition_spec=plan.spec,
        properties={
            **{key: value for key, value in plan.properties.items() if key not in _OF_MIGRATED_TABLES},
            **(properties or {}),
            GC_ENABLED.name: "false",
            "snapshot": "true",
        },
    )
    with transaction:
        place = transaction.metadata.location.rstrip("/")
        if f"{place}/".startswith(f"{plan.location}/") or plan.location.startswith(f"{place}/"):
            raise InvalidInputError(
                f"Cannot snapshot {row}: the new table's location {place} and the Hive table's own would share files. "
                "Choose another location."
            )
        if plan.data_files:
            transaction.add_data_files(plan.data_files, {"hive-table": str(row)})
    return SnapshotResult(catalog.load_table(target), len(plan.data_files), plan.records, plan.listing.total_bytes)
