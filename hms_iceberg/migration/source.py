"""What a Hive table must be to become an Iceberg table in place, and the columns that it gets.

Everything that cannot be migrated is found here, from the metastore's rows alone, and reported at once, before a file
is opened. Source: Apache Hive language manual, "DDL" and "Transactions"; Apache Spark, `HiveExternalCatalog`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.hms.rows.hive_rows import VIEWS, HiveColumn, HivePartition, HiveStorage, HiveTable
from hms_iceberg.migration.hive_types import TypeOptions, parse_hive_type
from hms_iceberg.migration.spark_schema import parse_spark_schema, spark_schema_json
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.spec.types import (
    IcebergType,
    NestedField,
    NestedType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.values.single_values import from_python

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_PROVIDER = "spark.sql.sources.provider"
_PLACEHOLDER = "-__PLACEHOLDER__"

# Parameters that describe the Hive table, its statistics or its storage, and mean nothing to an Iceberg table.
_TECHNICAL = {
    *("EXTERNAL", "external.table.purge", "transient_lastDdlTime", "last_modified_by", "last_modified_time"),
    *("numFiles", "numFilesErasureCoded", "numRows", "rawDataSize", "totalSize", "numPartitions"),
    *("COLUMN_STATS_ACCURATE", "STATS_GENERATED", "STATS_GENERATED_VIA_STATS_TASK", "DO_NOT_UPDATE_STATS"),
    *("bucketing_version", "discover.partitions", "partition.retention.period", "serialization.format", "path"),
    *("TRANSLATED_TO_EXTERNAL", "transactional", "storage_handler"),
}


@dataclass(frozen=True)
class SourceTable:
    """A Hive table that can be migrated.

    Attributes:
        table: its row.
        partitions: its partitions' rows; one entry for the whole table where it has no partition keys.
        schema: its columns, the partition keys last, with their final field ids; every Hive timestamp in it is an
            instant until the files have told what they hold.
        partition_values: stored values of each partition, in the same order as `partitions`.
    """

    table: HiveTable
    partitions: tuple[HivePartition, ...]
    schema: Schema
    partition_values: tuple[tuple[Any, ...], ...]

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


def table_location(table: HiveTable) -> str:
    """Where a table's files are; where Hive cannot read a table, Spark keeps its path in the SerDe's parameters."""
    location = table.location
    if location.rstrip("/").endswith(_PLACEHOLDER):
        location = table.storage.serde_parameters.get("path", location)
    return location.rstrip("/")


def inspect_source(table: HiveTable, partitions: Sequence[HivePartition], options: TypeOptions) -> SourceTable:
    """Check that a Hive table can be migrated, and find its columns and partition values.

    Args:
        table: the table's row.
        partitions: the rows of all of its partitions.
        options: choices for timestamps and chars.

    Raises:
        UnsupportedError: it cannot be migrated; every reason is in the message.
    """
    reasons = [*_reasons_in_kind(table), *_reasons_in_storage(table, partitions)]
    columns: tuple[NestedField, ...] = ()
    try:
        columns = _columns(table, options)
    except (UnsupportedError, InvalidInputError) as error:
        reasons.append(str(error))
    if not reasons:
        reasons += _reasons_in_partition_keys(table, columns)
    values: list[tuple[Any, ...]] = []
    if not reasons:
        keys = columns[len(columns) - len(table.partition_keys) :]
        for partition in partitions:
            try:
                values.append(_stored_values(partition, keys))
            except (UnsupportedError, InvalidInputError) as error:
                reasons.append(str(error))
                break
    if reasons:
        raise refusal(table, reasons)
    if not table.partition_keys:
        partitions, values = [HivePartition((), replace(table.storage, location=table_location(table)))], [()]
    schema = assign_fresh_ids(Schema(*columns))
    return SourceTable(table, tuple(partitions), schema, tuple(values))


def refusal(table: HiveTable, reasons: Sequence[str]) -> UnsupportedError:
    """The error that names every reason why a table cannot be migrated."""
    text = reasons[0] if len(reasons) == 1 else "".join(f"\n  - {reason}" for reason in reasons)
    return UnsupportedError(f"Table {table} cannot be migrated to Iceberg in place: {text}\nNothing was changed.")


def carried_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a Hive table that its user set, for the Iceberg table to keep."""
    return {
        key: value
        for key, value in parameters.items()
        if key not in _TECHNICAL and not key.startswith(("spark.sql.", "impala.", "hive.sql."))
    }


# --------------------------------------------------------------------------------------------- refusals


def _reasons_in_kind(table: HiveTable) -> list[str]:
    parameters, reasons = table.parameters, []
    if table.is_iceberg:
        return ["it is an Iceberg table already."]
    if table.table_type in VIEWS:
        return ["it is a view; migrate the tables below it."]
    if parameters.get("transactional", "").lower() == "true":
        reasons.append(
            "it is a transactional (ACID) table, whose files hold deleted rows too; copy it into a new table."
        )
    if "storage_handler" in parameters:
        reasons.append(f"its rows are kept by {parameters['storage_handler']}, not in files of the warehouse.")
    buckets = table.storage.bucket_count > 0 and table.storage.bucket_columns
    if buckets or int(parameters.get("spark.sql.sources.schema.numBuckets", "0") or 0) > 0:
        reasons.append("it is bucketed, and Iceberg's buckets use another hash; copy it into a new table.")
    if table.storage.stored_as_sub_directories:
        reasons.append("its skewed values are stored in directories of their own (list bucketing); copy it.")
    if not table.columns and not spark_schema_json(parameters):
        reasons.append("it has no columns.")
    return reasons


def _reasons_in_storage(table: HiveTable, partitions: Sequence[HivePartition]) -> list[str]:
    if table.is_iceberg or table.table_type in VIEWS or "storage_handler" in table.parameters:
        return []
    provider = table.parameters.get(_PROVIDER, "hive").lower()
    if provider not in ("hive", "parquet"):
        return [f"it is a Spark table of format {provider!r}; only Parquet can be migrated in place."]
    if provider == "hive":
        for name, storage in [("", table.storage), *((_partition_name(table, row), row.storage) for row in partitions)]:
            reason = _reason_in_format(storage)
            if reason:
                return [f"{f'partition {name} ' if name else 'it '}{reason}"]
    index_access = "parquet.column.index.access"
    if "true" in (table.parameters.get(index_access), table.storage.serde_parameters.get(index_access)):
        return [f"it matches columns by position ({index_access}=true), and Iceberg by name; copy it."]
    if not table_location(table):
        return ["it has no location."]
    return _reasons_in_locations(table, partitions)


def _reason_in_format(storage: HiveStorage) -> str | None:
    if storage.serde.lower().endswith("parquethiveserde"):
        return None
    name = storage.serde.rsplit(".", 1)[-1] or storage.input_format
    return f"is stored as {name}, not as Parquet; only Parquet can be migrated in place."


def _reasons_in_locations(table: HiveTable, partitions: Sequence[HivePartition]) -> list[str]:
    if any(not row.storage.location for row in partitions):
        return ["a partition has no location."]
    shared = [place for place, n in Counter(row.storage.location.rstrip("/") for row in partitions).items() if n > 1]
    if shared:
        return [f"several partitions share the location {shared[0]}, and a file can be in one partition only."]
    return []


def _reasons_in_partition_keys(table: HiveTable, columns: Sequence[NestedField]) -> list[str]:
    reasons = []
    for key in columns[len(columns) - len(table.partition_keys) :]:
        if isinstance(key.field_type, NestedType):
            reasons.append(
                f"its partition column {key.name!r} has type {key.field_type}, which cannot be partitioned by."
            )
        if isinstance(key.field_type, TimestamptzType):
            reasons.append(
                f"its partition column {key.name!r} is a timestamp, and the names of partitions do not say of which "
                "time zone; pass --timestamp-type timestamp to take them without zone."
            )
    return reasons


# ---------------------------------------------------------------------------------------------- columns


def _columns(table: HiveTable, options: TypeOptions) -> tuple[NestedField, ...]:
    """Data columns, then partition columns; Spark's own schema where it has one that is still true."""
    ids = count(1)
    spark_json = spark_schema_json(table.parameters)
    is_spark_source = table.parameters.get(_PROVIDER, "hive").lower() == "parquet"
    if is_spark_source and spark_json is not None:
        return _spark_ordered(table, parse_spark_schema(spark_json, options, ids))
    hive = tuple(_hive_column(column, options, ids) for column in (*table.columns, *table.partition_keys))
    if spark_json is None:
        return hive
    try:
        spark = parse_spark_schema(spark_json, options, ids)
    except UnsupportedError:
        return hive
    same = len(spark) == len(hive) and all(
        theirs.name.lower() == ours.name and _folded(theirs.field_type) == _folded(ours.field_type)
        for theirs, ours in zip(spark, hive, strict=True)
    )
    return tuple(replace(field, doc=hive[index].doc) for index, field in enumerate(spark)) if same else hive


def _hive_column(column: HiveColumn, options: TypeOptions, ids: Iterator[int]) -> NestedField:
    try:
        kind = parse_hive_type(column.type, options, ids)
    except UnsupportedError as error:
        raise UnsupportedError(f"Column {column.name!r}: {error}") from error
    return NestedField(next(ids), column.name, kind, doc=column.comment)


def _spark_ordered(table: HiveTable, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Spark's columns with the partition columns last, in the order of the metastore's partition keys."""
    names = Counter(field.name.lower() for field in fields)
    twice = [name for name, number in names.items() if number > 1]
    if twice:
        raise UnsupportedError(f"two columns are called {twice[0]!r} but for upper and lower case.")
    by_name = {field.name.lower(): field for field in fields}
    expected = int(table.parameters.get("spark.sql.sources.schema.numPartCols", "0") or 0)
    keys = [key.name.lower() for key in table.partition_keys]
    if len(keys) != expected or not set(keys) <= by_name.keys():
        raise UnsupportedError(
            "its partitions are not in the metastore (a table of Spark 2.0 or older); run "
            f"`MSCK REPAIR TABLE {table}` in Spark first."
        )
    return (*(field for field in fields if field.name.lower() not in keys), *(by_name[key] for key in keys))


def _folded(kind: IcebergType) -> str:
    return str(kind).lower()


# ------------------------------------------------------------------------------------- partition values


def _stored_values(partition: HivePartition, keys: Sequence[NestedField]) -> tuple[Any, ...]:
    values: list[Any] = []
    for text, key in zip(partition.values, keys, strict=True):
        if text == HIVE_NULL:
            values.append(None)
            continue
        try:
            values.append(from_python(key.field_type, _python_text(text, key.field_type)))
        except InvalidInputError as error:
            raise UnsupportedError(
                f"the partition {key.name}={text} is not a {key.field_type} ({error}); drop or rename the partition."
            ) from error
    return tuple(values)


def _python_text(text: str, kind: IcebergType) -> str:
    """Hive's text of a value as ISO has it: a blank between date and time becomes a T."""
    if isinstance(kind, (TimestampType, TimestamptzType)):
        return text.strip().replace(" ", "T")
    return text if isinstance(kind, StringType) else text.strip()


def _partition_name(table: HiveTable, partition: HivePartition) -> str:
    return "/".join(f"{key.name}={value}" for key, value in zip(table.partition_keys, partition.values, strict=False))
