"""Procedures that make Iceberg tables of Hive tables, add their files to one, or register a table."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.migration.add_hive_files import add_folder, add_hive_files, folder_of
from hms_iceberg.migration.migrate import migrate
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.snapshot_table import snapshot
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row

_PROPERTIES = Parameter("properties", "map<string,string>")
_PARALLELISM = Parameter("parallelism", "int")
# Nothing is to be done for it: a folder that is absent holds no rows, as Hive reads it.
_IGNORE_MISSING = Parameter("ignore_missing_files", "boolean")
_SOURCE = Parameter("source_table", "string", required=True)
# Choices that Apache Iceberg's procedures do not offer, after its own parameters.
_CHOICES = (
    Parameter("timestamp_type", "string"),
    Parameter("char_as_string", "boolean"),
    Parameter("include_subdirectories", "boolean"),
)


def _options(call: Call, backup_name: str | None = None) -> MigrationOptions:
    threads = call.get("parallelism", 1)
    if threads <= 0:
        raise InvalidInputError(f"Parallelism should be larger than 0, value: {threads}")
    return MigrationOptions(
        backup_name=backup_name,
        properties=call.get("properties", {}),
        threads=max(threads, MigrationOptions().threads),
        timestamp_type=call.get("timestamp_type"),
        char_as_string=call.get("char_as_string", False),
        include_subdirectories=call.get("include_subdirectories", False),
    )


def _source(call: Call) -> tuple[str, ...]:
    """The Hive table that the argument `source_table` names."""
    parts = tuple(part.strip().strip("`") for part in call.required("source_table").split("."))
    if len(parts) == 3 and parts[0] == "spark_catalog":
        parts = parts[1:]
    return (*call.current_namespace, *parts) if len(parts) == 1 else parts


def _migrate(call: Call) -> list[Row]:
    name = call.identifier[-1]
    # Spark's session catalog resolves names without regard to case, and the metastore has them in lower case.
    options = _options(call, backup_name=call.get("backup_table_name", f"{name}_BACKUP_"))
    result = migrate(call.catalog, call.identifier, options)
    if result.already_done:
        raise InvalidInputError(f"Cannot migrate {result.table}: it is an Iceberg table already.")
    if call.get("drop_backup", False):
        HiveTables.of(call.catalog.metastore).drop(*result.backup.split("."))
    return [(result.files,)]


def _snapshot(call: Call) -> list[Row]:
    options = _options(call)
    result = snapshot(call.catalog, _source(call), call.identifier, location=call.get("location"), options=options)
    return [(result.files,)]


def _add_files(call: Call) -> list[Row]:
    source = call.required("source_table")
    folder = folder_of(source)
    partitions = call.get("partition_filter", {})
    check = call.get("check_duplicate_files", True)
    if folder is not None:
        added = add_folder(
            call.catalog, call.identifier, folder, partition_filter=partitions, check_duplicate_files=check
        )
        return [(added.files, None if added.files else 0)]
    added = add_hive_files(
        call.catalog, call.identifier, _source(call), partition_filter=partitions, check_duplicate_files=check
    )
    # As in Apache Iceberg, which tells the number only where it adds files one by one.
    return [(added.files, None if added.files and call.table().spec().fields else added.changed_partitions)]


MIGRATE = Procedure(
    "migrate",
    (
        TABLE,
        _PROPERTIES,
        Parameter("drop_backup", "boolean"),
        Parameter("backup_table_name", "string"),
        _PARALLELISM,
        _IGNORE_MISSING,
        *_CHOICES,
    ),
    (Column("migrated_files_count", "bigint", nullable=False),),
    _migrate,
)

SNAPSHOT = Procedure(
    "snapshot",
    (_SOURCE, TABLE, Parameter("location", "string"), _PROPERTIES, _PARALLELISM, _IGNORE_MISSING, *_CHOICES),
    (Column("imported_files_count", "bigint", nullable=False),),
    _snapshot,
)

ADD_FILES = Procedure(
    "add_files",
    (
        TABLE,
        _SOURCE,
        Parameter("partition_filter", "map<string,string>"),
        Parameter("check_duplicate_files", "boolean"),
        _PARALLELISM,
    ),
    (Column("added_files_count", "bigint", nullable=False), Column("changed_partition_count", "bigint")),
    _add_files,
)


def _register_table(call: Call) -> list[Row]:
    metadata_file = call.required("metadata_file")
    if not metadata_file:
        raise InvalidInputError("Cannot handle an empty argument metadata_file: expected the path of a metadata file.")
    snapshot = call.catalog.register_table(call.identifier, metadata_file).current_snapshot()
    if snapshot is None:
        return [(None, None, None)]
    summary: Mapping[str, str] = snapshot.summary or {}
    totals = (summary.get("total-records"), summary.get("total-data-files"))
    return [(snapshot.snapshot_id, *(None if total is None else int(total) for total in totals))]


REGISTER_TABLE = Procedure(
    "register_table",
    (TABLE, Parameter("metadata_file", "string", required=True)),
    (
        Column("current_snapshot_id", "bigint"),
        Column("total_records_count", "bigint"),
        Column("total_data_files_count", "bigint"),
    ),
    _register_table,
)
