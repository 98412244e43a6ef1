"""Rows of ordinary Hive tables and partitions, as values that the rooms above can hold without Thrift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MANAGED_TABLE = "MANAGED_TABLE"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
VIEWS = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
EXTERNAL = "EXTERNAL"
EXTERNAL_PURGE = "external.table.purge"
TABLE_TYPE = "table_type"
METADATA_LOCATION = "metadata_location"


@dataclass(frozen=True)
class HiveColumn:
    """A column or partition key: its name and type as the metastore has them, and its comment."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True)
class HiveStorage:
    """Where and how the files of a table or of one partition are stored (a Hive storage descriptor)."""

    location: str
    input_format: str
    output_format: str
    serde: str
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = -1
    skewed_columns: tuple[str, ...] = ()
    stored_as_sub_directories: bool = False
    serde_parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HivePartition:
    """One partition: its values as text, in the order of the table's keys, and its storage."""

    values: tuple[str, ...]
    storage: HiveStorage


@dataclass(frozen=True)
class HiveTable:
    """A row of the metastore for any kind of table (`MANAGED_TABLE`, `VIRTUAL_VIEW` …), names in lower case; `columns`
    are without the partition keys, `create_time` in seconds since 1970-01-01 UTC."""

    database: str
    name: str
    table_type: str
    columns: tuple[HiveColumn, ...]
    partition_keys: tuple[HiveColumn, ...]
    storage: HiveStorage
    parameters: Mapping[str, str]
    owner: str | None = None
    create_time: int = 0

    @property
    def location(self) -> str:
        return self.storage.location

    @property
    def is_iceberg(self) -> bool:
        return self.parameters.get(TABLE_TYPE, "").upper() == "ICEBERG" and METADATA_LOCATION in self.parameters

    @property
    def is_external(self) -> bool:
        """Whether the metastore leaves the files alone when the table is dropped or renamed."""
        return self.table_type == EXTERNAL_TABLE or self.parameters.get(EXTERNAL, "").upper() == "TRUE"

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"


def hive_table(row: Any) -> HiveTable:
    return HiveTable(
        database=row.dbName,
        name=row.tableName,
        table_type=row.tableType or MANAGED_TABLE,
        columns=_columns(row.sd.cols if row.sd else None),
        partition_keys=_columns(row.partitionKeys),
        storage=_storage(row.sd),
        parameters=dict(row.parameters or {}),
        owner=row.owner,
        create_time=row.createTime or 0,
    )


def hive_partition(row: Any) -> HivePartition:
    return HivePartition(values=tuple(row.values), storage=_storage(row.sd))


def _columns(rows: Any) -> tuple[HiveColumn, ...]:
    return tuple(HiveColumn(row.name, row.type, row.comment or None) for row in rows or ())


def _storage(descriptor: Any) -> HiveStorage:
    if descriptor is None:  # a view
        return HiveStorage("", "", "", "")
    serde, skewed = descriptor.serdeInfo, descriptor.skewedInfo
    return HiveStorage(
        location=descriptor.location or "",
        input_format=descriptor.inputFormat or "",
        output_format=descriptor.outputFormat or "",
        serde=(serde.serializationLib or "") if serde else "",
        bucket_columns=tuple(descriptor.bucketCols or ()),
        bucket_count=-1 if descriptor.numBuckets is None else descriptor.numBuckets,
        skewed_columns=tuple((skewed.skewedColNames or ()) if skewed else ()),
        stored_as_sub_directories=bool(descriptor.storedAsSubDirectories),
        serde_parameters=dict((serde.parameters or {}) if serde else {}),
    )
