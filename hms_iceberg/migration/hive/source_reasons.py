"""Reasons why a Hive table, a partition or a file cannot be migrated.

Source: Apache Hive language manual, "DDL" and "Transactions"; Apache Spark, `HiveExternalCatalog`.
"""

from __future__ import annotations

import enum
import math
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.rows.hive_rows import VIEWS, HivePartition, HiveTable
from hms_iceberg.migration.hive.format_footers import format_of, provider_of, shown_format
from hms_iceberg.migration.hive.source_columns import spark_schema_json
from hms_iceberg.spec.data_types import NestedField, NestedType, TimestamptzType
from hms_iceberg.spec.places import Place


def partition_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A key that is equal for two sets of stored partition values only if they are the same partition."""
    return tuple(_bits(value) if isinstance(value, float) else value for value in values)


def _bits(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)


class Remedy(enum.Enum):
    OPTION = "option"
    REWRITE = "rewrite"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Reason:
    text: str
    remedy: Remedy = Remedy.NOTHING


@dataclass(frozen=True)
class Refusal:
    """A table that cannot be migrated in place, and every reason that was found, at least one."""

    table: HiveTable
    reasons: tuple[Reason, ...]

    @property
    def remedy(self) -> Remedy:
        remedies = {reason.remedy for reason in self.reasons}
        for remedy in (Remedy.NOTHING, Remedy.REWRITE):
            if remedy in remedies:
                return remedy
        return Remedy.OPTION

    def error(self) -> UnsupportedError:
        texts = [reason.text for reason in self.reasons]
        text = texts[0] if len(texts) == 1 else "".join(f"\n  - {each}" for each in texts)
        hint = "\nWith --rewrite, Spark copies it into a new table." if self.remedy is Remedy.REWRITE else ""
        return UnsupportedError(
            f"Table {self.table} cannot be migrated to Iceberg in place: {text}{hint}\nNothing was changed."
        )


def of_texts(texts: Sequence[str], remedy: Remedy) -> list[Reason]:
    """Reasons with the same remedy."""
    return [Reason(text, remedy) for text in texts]


TRANSACTIONAL = (
    "a transactional (ACID) table, whose files hold deleted rows too, and Spark reads none; have Hive copy it into one "
    "that is not (create table … tblproperties ('transactional' = 'false') as select …), and migrate that."
)
_PLACEHOLDER = "-__PLACEHOLDER__"
_IN_PLACE = "and only Parquet, ORC and Avro can be migrated in place."
# Tables and sessions that set these find columns by their places in files, whatever the names. Spark knows one of them.
_PARQUET_BY_POSITION = "parquet.column.index.access"
_ORC_BY_POSITION = "orc.force.positional.evolution"
# What says that not all of a file's lines are rows: Hive leaves them out itself, whatever the format.
_SKIPPED_LINES = ("skip.header.line.count", "skip.footer.line.count")
# Hive takes it from the session, Spark from the table.
_RECORD_DELIMITER = "textinputformat.record.delimiter"


def table_location(table: HiveTable) -> str:
    """Where a table's files are; if Hive cannot read a table, Spark keeps its path in the SerDe's parameters."""
    location = table.location
    if location.rstrip("/").endswith(_PLACEHOLDER):
        location = table.storage.serde_parameters.get("path", location)
    return location.rstrip("/")


def reasons_against(table: HiveTable, partitions: Sequence[HivePartition]) -> list[Reason]:
    """Reasons why a table cannot be migrated, whatever its columns are."""
    parameters = table.parameters
    if table.is_iceberg:
        return [Reason("it is an Iceberg table already.")]
    if table.table_type in VIEWS:
        return [Reason("it is a view; migrate the tables below it.")]
    if "storage_handler" in parameters:
        return [Reason(f"its rows are kept by {parameters['storage_handler']}, not in files of the warehouse.")]
    reasons = [*reasons_against_spark(table), *(Reason(text, Remedy.REWRITE) for text in _only_by_copy(table))]
    if parameters.get("transactional", "").lower() == "true":
        reasons.append(Reason(f"it is {TRANSACTIONAL}"))
    if not table.columns and not spark_schema_json(parameters):
        reasons.append(Reason("it has no columns."))
    return [*reasons, *_reasons_in_storage(table, partitions)]


def reasons_against_spark(table: HiveTable) -> list[Reason]:
    """Why the rows that Spark reads, and Iceberg's readers of the same files, are not those that Hive reads."""
    reasons = []
    if _is_true(table, _PARQUET_BY_POSITION):
        text = (
            f"it matches columns by position ({_PARQUET_BY_POSITION}=true), and Iceberg and Spark by name; have Hive "
            "copy it into a table without that (create table … as select …), and migrate that."
        )
        reasons.append(Reason(text))
    if provider_of(table) != "hive":
        return reasons  # Spark reads it by options of its own, and Hive does not
    for name in _SKIPPED_LINES:
        value = parameter(table, name)
        if value not in (None, "", "0"):
            text = (
                f"Hive leaves lines of its files out ({name}={value}), and Spark and Iceberg read every line as a row; "
                "have Hive copy it into a table without that (create table … as select …) and migrate that, or unset "
                "the property if the files have no such lines."
            )
            reasons.append(Reason(text))
    if parameter(table, _RECORD_DELIMITER) is not None:
        text = (
            f"it sets {_RECORD_DELIMITER}, which Spark heeds and Hive only in a session, so that they read other rows; "
            "have the one copy it whose rows are wanted, and migrate that."
        )
        reasons.append(Reason(text))
    return reasons


def _is_true(table: HiveTable, name: str) -> bool:
    return (parameter(table, name) or "").lower() == "true"


def parameter(table: HiveTable, name: str) -> str | None:
    """A parameter of a table or of its SerDe, stripped; Hive hands both to its readers as one, the table's first."""
    value = table.parameters.get(name, table.storage.serde_parameters.get(name))
    return None if value is None else value.strip()


def _only_by_copy(table: HiveTable) -> list[str]:
    parameters, texts = table.parameters, []
    buckets = table.storage.bucket_count > 0 and table.storage.bucket_columns
    if buckets or int(parameters.get("spark.sql.sources.schema.numBuckets", "0") or 0) > 0:
        texts.append("it is bucketed, and Iceberg's buckets use another hash; copy it into a new table.")
    if table.storage.stored_as_sub_directories:
        texts.append("its skewed values are stored in directories of their own (list bucketing); copy it.")
    if _is_true(table, _ORC_BY_POSITION):
        texts.append(f"it matches columns by position ({_ORC_BY_POSITION}=true), and Iceberg by name; copy it.")
    return texts


def _reasons_in_storage(table: HiveTable, partitions: Sequence[HivePartition]) -> list[Reason]:
    if not table.partition_keys and format_of(table) is None:
        return [Reason(f"it is stored as {shown_format(table)}, {_IN_PLACE}", Remedy.REWRITE)]
    for row in partitions:
        if format_of(table, row) is None:
            text = f"partition {_partition_name(table, row)} is stored as {shown_format(table, row)}, {_IN_PLACE}"
            return [Reason(text, Remedy.REWRITE)]
    if table.partition_keys and not partitions and format_of(table) is None:
        return [Reason(f"it is stored as {shown_format(table)}, {_IN_PLACE}", Remedy.REWRITE)]
    if not table_location(table):
        return [Reason("it has no location.")]
    return _reasons_in_locations(partitions)


def _reasons_in_locations(partitions: Sequence[HivePartition]) -> list[Reason]:
    if any(not row.storage.location for row in partitions):
        return [Reason("a partition has no location.")]
    counts = Counter(Place.of(row.storage.location) for row in partitions)
    shared = next((row.storage.location for row in partitions if counts[Place.of(row.storage.location)] > 1), None)
    if shared is not None:
        text = f"several partitions share the location {shared}, and a file can be in one partition only."
        return [Reason(text, Remedy.REWRITE)]
    return []


def reasons_in_partition_keys(table: HiveTable, columns: Sequence[NestedField]) -> list[Reason]:
    """Reasons why a table's partition columns cannot be those of an Iceberg table."""
    reasons = []
    for key in columns[len(columns) - len(table.partition_keys) :]:
        if isinstance(key.field_type, NestedType):
            text = f"its partition column {key.name!r} has type {key.field_type}, which cannot be partitioned by."
            reasons.append(Reason(text))
        if isinstance(key.field_type, TimestamptzType):
            text = (
                f"its partition column {key.name!r} is a timestamp, and the names of partitions do not say of which "
                "time zone; pass --timestamp-type timestamp to take them without zone."
            )
            reasons.append(Reason(text, Remedy.OPTION))
    return reasons


def _partition_name(table: HiveTable, partition: HivePartition) -> str:
    return "/".join(f"{key.name}={value}" for key, value in zip(table.partition_keys, partition.values, strict=False))
