"""A Hive table that is to be migrated: its partitions and files.

Everything that cannot be migrated is found here, from the metastore's rows alone, and reported at once, before a file
is opened. Source: Apache Hive language manual, "DDL" and "Transactions"; Apache Spark, `HiveExternalCatalog`.

Names that start with `_` or `.` are hidden, empty files hold nothing, and a partition's files are those in its own
location, wherever that is. Source: Apache Hive, `FileUtils.HIDDEN_FILES_PATH_FILTER`; Apache Spark,
`HadoopFSUtils.shouldFilterOutPathName`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveTable
from hms_iceberg.migration.hive.format_footers import (
    AVRO,
    LITERAL,
    URL,
    AvroNames,
    avro_names,
    declared_schema,
    format_of,
    provider_of,
)
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source_columns import columns_of, stored_values
from hms_iceberg.migration.hive.source_reasons import (
    Reason,
    Refusal,
    Remedy,
    of_texts,
    reasons_against,
    reasons_in_partition_keys,
    table_location,
)
from hms_iceberg.migration.migration_progress import LISTING, Progress, in_threads
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.storage import FileInfo, Places, Storage

_ACID_FOLDER = re.compile(r"/(?:base|delta|delete_delta)_\d{7,}(?:_\d+)*/[^/]+$")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One data file: location, size in bytes, time of change, and the number of its partition."""

    location: str
    size: int
    modified_ms: int
    partition: int


@dataclass(frozen=True)
class Listing:
    """The data files of a table at one time, with examples of what stands against a migration."""

    files: tuple[SourceFile, ...]  # the files that hold rows
    empty: int  # how many files of no bytes were left out
    # a file below a partition's directory rather than in it, on which Hive and Spark do not agree
    in_subdirectories: str | None
    shared: str | None  # a file that is in two partitions
    transactional: str | None = None  # a file in a folder of a transactional (ACID) table

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


def list_files(storage: Storage, locations: Sequence[str], threads: int, progress: Progress) -> Listing:
    """Lists the files in the directory of each partition (or of the table); an absent one holds no files."""
    files: list[SourceFile] = []
    empty, below = 0, None
    listed = in_threads(lambda location: _visible(storage, location), locations, threads)
    for partition, found in enumerate(listed):
        location = locations[partition].rstrip("/")
        for info in found:
            if info.size == 0:
                empty += 1
                continue
            files.append(SourceFile(info.location, info.size, info.modified_ms, partition))
            if "/" in info.location[len(location) + 1 :]:
                below = below or info.location
        progress(LISTING, partition + 1, len(locations))
    acid = next((file.location for file in files if _ACID_FOLDER.search(file.location)), None) if below else None
    shared = _first_twice((file.location for file in files), Places(storage))
    return Listing(tuple(files), empty, below, shared, acid)


def _visible(storage: Storage, location: str) -> list[FileInfo]:
    root = location.rstrip("/")
    return [info for info in storage.list(root) if not _is_hidden(info.location[len(root) + 1 :])]


def _is_hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _first_twice(locations: Iterable[str], places: Places) -> str | None:
    seen: set[Place] = set()
    for location in locations:
        place = places.of(location)
        if place in seen:
            return location
        seen.add(place)
    return None


# Parameters that describe the Hive table, its statistics or its storage, and mean nothing to an Iceberg table.
_TECHNICAL = {
    *("EXTERNAL", "external.table.purge", "transient_lastDdlTime", "last_modified_by", "last_modified_time"),
    *("numFiles", "numFilesErasureCoded", "numRows", "rawDataSize", "totalSize", "numPartitions"),
    *("COLUMN_STATS_ACCURATE", "STATS_GENERATED", "STATS_GENERATED_VIA_STATS_TASK", "DO_NOT_UPDATE_STATS"),
    *("bucketing_version", "discover.partitions", "partition.retention.period", "serialization.format", "path"),
    *("TRANSLATED_TO_EXTERNAL", "transactional", "storage_handler", LITERAL, URL),
}


@dataclass(frozen=True)
class SourceTable:
    """A Hive table that can be migrated."""

    table: HiveTable
    # its partitions' rows; one entry for the whole table if it has no partition keys
    partitions: tuple[HivePartition, ...]
    # its columns, the partition keys last, with their final field ids; every Hive timestamp in it is an instant until
    # the footers are read
    schema: Schema
    partition_values: tuple[tuple[Any, ...], ...]  # stored values of each partition, in the same order as `partitions`
    formats: tuple[str, ...]  # the format of each partition's files, in the same order
    avro_names: AvroNames  # the names that columns have in Avro files

    @property
    def location(self) -> str:
        """Where the table's files are, without a slash at the end."""
        return table_location(self.table)

    @property
    def is_partitioned(self) -> bool:
        return bool(self.table.partition_keys)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        count = len(self.table.partition_keys)
        return tuple(field.name for field in self.schema.fields[len(self.schema.fields) - count :])


def inspect_source(
    table: HiveTable, partitions: Sequence[HivePartition], options: TypeOptions, avro_schema: str | None = None
) -> SourceTable:
    """Checks that a Hive table can be migrated, and finds its columns and partition values; see `source_or_refusal`."""
    found = source_or_refusal(table, partitions, options, avro_schema)
    if isinstance(found, Refusal):
        raise found.error()
    return found


def source_or_refusal(
    table: HiveTable, partitions: Sequence[HivePartition], options: TypeOptions, avro_schema: str | None = None
) -> SourceTable | Refusal:
    """A Hive table's columns and partition values, or every reason against its migration with its remedy. `avro_schema`
    is the text behind the table's `avro.schema.url`."""
    reasons = reasons_against(table, partitions)
    columns: tuple[NestedField, ...] = ()
    try:
        columns = columns_of(table, options)
    except (UnsupportedError, InvalidInputError) as error:
        reasons.append(Reason(str(error), _remedy_for_columns(table, options)))
    names = AvroNames(exact=provider_of(table) != AVRO.lower())
    literal = avro_schema or declared_schema(table, LITERAL)
    try:
        names = names if literal is None else avro_names(literal)
    except UnsupportedError as error:
        reasons.append(Reason(str(error)))
    if not reasons:
        reasons += reasons_in_partition_keys(table, columns)
    values: list[tuple[Any, ...]] = []
    if not reasons:
        keys = columns[len(columns) - len(table.partition_keys) :]
        try:
            values = [stored_values(partition, keys) for partition in partitions]
        except (UnsupportedError, InvalidInputError) as error:
            reasons += of_texts([str(error)], Remedy.NOTHING)
    if reasons:
        return Refusal(table, tuple(reasons))
    formats = [format_of(table, partition) or "" for partition in partitions]
    if not table.partition_keys:
        partitions, values = [HivePartition((), replace(table.storage, location=table_location(table)))], [()]
        formats = [format_of(table) or ""]
    schema = assign_fresh_ids(Schema(*columns))
    return SourceTable(table, tuple(partitions), schema, tuple(values), tuple(formats), names)


def _remedy_for_columns(table: HiveTable, options: TypeOptions) -> Remedy:
    """Whether a choice would make the columns ones that Iceberg has."""
    try:
        columns_of(table, replace(options, char_as_string=True))
    except (UnsupportedError, InvalidInputError):
        return Remedy.NOTHING
    return Remedy.OPTION


def carried_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a Hive table that its user set, for the Iceberg table to keep."""
    return {
        key: value
        for key, value in parameters.items()
        if key not in _TECHNICAL and not key.startswith(("spark.sql.", "impala.", "hive.sql."))
    }
