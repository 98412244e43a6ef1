"""Adds the files of a Hive table, of chosen partitions of it, or of a folder to an existing Iceberg table.

Source: Iceberg documentation, "Spark Procedures", `add_files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError, NoSuchTableError, UnsupportedError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.metastore import MetadataVersion, table_identifier
from hms_iceberg.migration.hive.source import list_files
from hms_iceberg.migration.hive.source_reasons import TRANSACTIONAL
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.table import Table
from hms_iceberg.table.changes.file_changes import add_files as add_to_table
from hms_iceberg.table.changes.row_change import ChangeOptions
from hms_iceberg.transaction.transaction import Existing, Transaction

_THREADS = min(32, 4 * (os.cpu_count() or 4))
_FORMATS = ("parquet", "orc", "avro")


@dataclass(frozen=True)
class AddFilesResult:
    """The files and partitions that were added.

    Attributes:
        files: how many files.
        changed_partitions: how many partitions of the table they are in.
    """

    files: int
    changed_partitions: int


@dataclass(frozen=True)
class _PartitionedFiles:
    """Files with the names and values of their partitions."""

    name: str
    keys: tuple[str, ...]
    files: Mapping[str, Mapping[str, str]]
    transactional: str | None = None


def add_hive_files(
    catalog: Catalog,
    table: str | tuple[str, ...],
    source: str | tuple[str, ...],
    *,
    partition_filter: Mapping[str, str] | None = None,
    check_duplicate_files: bool = True,
    progress: Progress = silent,
) -> AddFilesResult:
    """Adds the Parquet, ORC and Avro files of a Hive table to an Iceberg table, where they are. Columns of a file that
    the table lacks are left out, and logged.

    Args:
        catalog: the catalog of both.
        table: the Iceberg table.
        source: the Hive table.
        partition_filter: only partitions with these values, as text.
        check_duplicate_files: whether files that are in the table already are refused.
        progress: is called with each stage, and how many of its parts are done.

    Returns:
        how many files were added, to how many partitions of the table.

    Raises:
        NoSuchTableError: there is no such table.
        UnsupportedError: the source is no Hive table of files, but a view or an Iceberg table, or it is transactional.
        InvalidInputError: a filter on what is no partition column, or a file is in the table already.
        SchemaMismatchError, TypeMismatchError, CorruptDataFileError: a file does not fit the table; nothing was added.
    """
    target = catalog.load_table(table)
    hive = HiveTables.of(catalog.metastore)
    database, name = (part.lower() for part in table_identifier(source))
    row = hive.find(database, name)
    if row is None:
        raise NoSuchTableError(f"Table {database}.{name} does not exist in the metastore. Check its name.")
    if row.is_iceberg or not row.location:
        raise UnsupportedError(
            f"Cannot add files of {row} to {'.'.join(target.identifier)}: it is no Hive table with files of its own."
        )
    if row.parameters.get("transactional", "").lower() == "true":
        raise _transactional(target, f"{row} is")
    source_files = _of_hive_table(catalog, hive, row, progress)
    return _add(target, source_files, partition_filter or {}, check_duplicate_files)


def add_folder(
    catalog: Catalog,
    table: str | tuple[str, ...],
    location: str,
    *,
    partition_filter: Mapping[str, str] | None = None,
    check_duplicate_files: bool = True,
    progress: Progress = silent,
) -> AddFilesResult:
    """Adds the Parquet, ORC and Avro files below a folder to an Iceberg table, where they are. Columns of a file that
    the table lacks are left out, and logged.

    Args:
        catalog: the catalog of the table.
        table: the Iceberg table.
        location: the folder; folders of the form `name=value` below it are partitions.
        partition_filter: only partitions with these values, as text.
        check_duplicate_files: whether files that are in the table already are refused.
        progress: is called with each stage, and how many of its parts are done.

    Returns:
        how many files were added, to how many partitions of the table.

    Raises:
        NoSuchTableError, UnsupportedError, InvalidInputError, SchemaMismatchError, TypeMismatchError,
            CorruptDataFileError: as of `add_hive_files`.
    """
    target = catalog.load_table(table)
    root = location.rstrip("/")
    listing = list_files(catalog.storage, [root], _THREADS, progress)
    files = {each.location: _folders(each.location[len(root) + 1 :]) for each in listing.files}
    keys = tuple(dict.fromkeys(name for values in files.values() for name in values))
    found = _PartitionedFiles(location, keys, files, listing.transactional)
    return _add(target, found, partition_filter or {}, check_duplicate_files)


def _of_hive_table(catalog: Catalog, hive: HiveTables, row: HiveTable, progress: Progress) -> _PartitionedFiles:
    keys = tuple(column.name for column in row.partition_keys)
    partitions = list(hive.partitions(row.database, row.name)) if keys else []
    locations = [each.storage.location for each in partitions] if keys else [row.location]
    listing = list_files(catalog.storage, locations, _THREADS, progress)
    files = {
        each.location: dict(zip(keys, partitions[each.partition].values, strict=True)) if keys else {}
        for each in listing.files
    }
    return _PartitionedFiles(str(row), keys, files, listing.transactional)


def _folders(path: str) -> dict[str, str]:
    parts = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {unquote(name): unquote(value) for name, _, value in parts}


def _add(
    table: Table, source: _PartitionedFiles, partition_filter: Mapping[str, str], check_duplicate_files: bool
) -> AddFilesResult:
    name = ".".join(table.identifier)
    if source.transactional:
        raise _transactional(table, f"file {source.transactional} is of")
    fields = [field.name for field in table.spec().fields]
    unknown = [key for key in partition_filter if key.lower() not in {each.lower() for each in (*source.keys, *fields)}]
    if unknown:
        raise InvalidInputError(
            f"Cannot add files to table {name}: the partition filter refers to columns that are not partitioned: "
            f"{', '.join(unknown)}. Valid partition columns: {', '.join(source.keys) or 'none'}."
        )
    files = dict(_matching(source, partition_filter))
    if not files:
        return AddFilesResult(0, 0)
    origin = Existing(MetadataVersion(table.metadata_location, table.metadata))
    transaction = Transaction(table.identifier, origin, table.metastore, table.storage)
    partitions = {path: values for path, values in files.items() if values}
    options = ChangeOptions.of(table.metadata, None, MAIN_BRANCH)
    add_to_table(transaction, list(files), check_duplicate_files, options, partitions, leave_out_columns=True)
    snapshot = transaction.commit().metadata.current_snapshot()
    changed = "0" if snapshot is None else snapshot.summary.get("changed-partition-count", "0")
    return AddFilesResult(len(files), int(changed))


def _transactional(table: Table, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"Cannot add files to {'.'.join(table.identifier)}: {what} {TRANSACTIONAL} Nothing was changed."
    )


def _matching(source: _PartitionedFiles, wanted: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    lower = {key.lower(): str(value) for key, value in wanted.items()}
    for path, values in source.files.items():
        mine = {key.lower(): value for key, value in values.items()}
        if all(mine.get(key) == value for key, value in lower.items()):
            yield path, values


def folder_of(source: str) -> str | None:
    """The folder that a source of the form `` `parquet`.`path` `` names; None if it is the name of a table."""
    head, dot, rest = source.strip().partition(".")
    if dot and head.strip("`").lower() in _FORMATS and (rest.startswith("`") or "/" in rest):
        return rest.strip().strip("`")
    return None
