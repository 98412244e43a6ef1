"""What a Hive table must be to become an Iceberg table in place, and the columns that it gets.

Everything that cannot be migrated is found here, from the metastore's rows alone, and reported at once, before a file
is opened. Source: Apache Hive language manual, "DDL" and "Transactions"; Apache Spark, `HiveExternalCatalog`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveTable
from hms_iceberg.migration.formats.avro_names import LITERAL, URL, AvroNames, avro_names, declared_schema
from hms_iceberg.migration.formats.kinds import AVRO, format_of, provider_of
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.refusals import Reason, Refusal, Remedy, of_texts
from hms_iceberg.migration.hive.source_columns import columns_of, stored_values
from hms_iceberg.migration.hive.source_reasons import reasons_against, reasons_in_partition_keys, table_location
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.schema import Schema, assign_fresh_ids

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
    """A Hive table that can be migrated.

    Attributes:
        table: its row.
        partitions: its partitions' rows; one entry for the whole table if it has no partition keys.
        schema: its columns, the partition keys last, with their final field ids; every Hive timestamp in it is an
            instant until the files have told what they hold.
        partition_values: stored values of each partition, in the same order as `partitions`.
        formats: the format of each partition's files, in the same order.
        avro_names: the names that columns have in Avro files.
    """

    table: HiveTable
    partitions: tuple[HivePartition, ...]
    schema: Schema
    partition_values: tuple[tuple[Any, ...], ...]
    formats: tuple[str, ...]
    avro_names: AvroNames

    @property
    def location(self) -> str:
        """Where the table's files are, without a slash at the end."""
        return table_location(self.table)

    @property
    def is_partitioned(self) -> bool:
        """Whether it has partition keys."""
        return bool(self.table.partition_keys)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns, in order."""
        count = len(self.table.partition_keys)
        return tuple(field.name for field in self.schema.fields[len(self.schema.fields) - count :])


def inspect_source(
    table: HiveTable, partitions: Sequence[HivePartition], options: TypeOptions, avro_schema: str | None = None
) -> SourceTable:
    """Check that a Hive table can be migrated, and find its columns and partition values; see `look_at_source`.

    Raises:
        UnsupportedError: it cannot be migrated; every reason is in the message.
    """
    found = look_at_source(table, partitions, options, avro_schema)
    if isinstance(found, Refusal):
        raise found.error()
    return found


def look_at_source(
    table: HiveTable, partitions: Sequence[HivePartition], options: TypeOptions, avro_schema: str | None = None
) -> SourceTable | Refusal:
    """A Hive table's columns and partition values, or every reason against its migration.

    Args:
        table: the table's row.
        partitions: the rows of all of its partitions.
        options: choices for timestamps and chars.
        avro_schema: the text behind its `avro.schema.url`, if it has one.
    """
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
