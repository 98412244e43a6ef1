"""Rows of the Hive Metastore for Iceberg tables and views.

Parameters that are not Iceberg's survive every commit; so does everything else of a row that is not named here.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hms_iceberg.encryption.encrypted_tables import METADATA_HASH, check_same_key, metadata_hash
from hms_iceberg.errors import NoSuchTableError, NoSuchViewError, NotAnIcebergTableError
from hms_iceberg.hms.connection.client_settings import current_user
from hms_iceberg.hms.connection.property_reader import PropertyReader
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.column_types import ColumnOptions, hive_columns
from hms_iceberg.hms.rows.transaction_marks import MARK
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer, ViewMetadataVersion
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewVersion
from hms_iceberg.spec.partitions.partition_specs import spec_to_json
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.sort_orders import sort_order_to_json
from hms_iceberg.spec.table_properties import ENCRYPTION_KEY_ID, GC_ENABLED, HIVE_ENGINE


@dataclass(frozen=True)
class RowSettings:
    """How a table is shown in its row of the metastore."""

    # longest parameter value or column type, in characters (`iceberg.hive.table-property-max-size`; 4000 for databases
    # made before Hive 2.3). With 0, schema, spec, order and snapshot are not shown at all, and there is no limit for
    # the rest.
    max_value_length: int = 32672
    hive_engine: bool = False  # whether Hive itself shall read the tables (`iceberg.engine.hive.enabled`)
    # whether a timestamp with zone is shown as Hive 3's `timestamp with local time zone`
    # (`hive.hive2-compatible=false`). Spark cannot parse that name, so it is not the default.
    local_time_zone: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RowSettings:
        reader = PropertyReader(properties)
        legacy = reader.integer("hive.table-property-max-size", cls.max_value_length)
        return cls(
            max_value_length=max(0, reader.integer("iceberg.hive.table-property-max-size", legacy)),
            hive_engine=reader.boolean("iceberg.engine.hive.enabled", False),
            local_time_zone=not reader.boolean("hive.hive2-compatible", True),
        )


logger = logging.getLogger(__name__)

TABLE_TYPE = "table_type"
ICEBERG = "ICEBERG"
METADATA_LOCATION = "metadata_location"
PREVIOUS_METADATA_LOCATION = "previous_metadata_location"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
VIRTUAL_VIEW = "VIRTUAL_VIEW"
OWNER = "hive.metastore.table.owner"

_STORAGE_HANDLER = "storage_handler"
_STATISTICS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}
_DERIVED = (
    "current-snapshot-id",
    "current-snapshot-timestamp-ms",
    "current-snapshot-summary",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
)
_TRANSLATED = {GC_ENABLED.name: "external.table.purge"}
_MAX_KEY_LENGTH = 256  # of TABLE_PARAMS.PARAM_KEY, in all versions of Hive

_warned: set[tuple[str, str]] = set()

# What a row says about itself: a table property of this name stays in the metadata file.
_RESERVED = frozenset(
    {
        "EXTERNAL",
        TABLE_TYPE,
        METADATA_LOCATION,
        PREVIOUS_METADATA_LOCATION,
        _STORAGE_HANDLER,
        "uuid",
        "snapshot-count",
        "transient_lastDdlTime",
        "COLUMN_STATS_ACCURATE",
        "DO_NOT_UPDATE_STATS",
        OWNER,
        METADATA_HASH,
        MARK,
        *_STATISTICS,
        *_DERIVED,
    }
)

_HIVE = "org.apache.iceberg.mr.hive."
_FORMATS_FOR_HIVE = (
    f"{_HIVE}HiveIcebergInputFormat",
    f"{_HIVE}HiveIcebergOutputFormat",
    f"{_HIVE}HiveIcebergSerDe",
)
_FORMATS = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)


# --------------------------------------------------------------------------------------------------- reading


def is_iceberg_table(row: ttypes.Table) -> bool:
    """Whether a row is an Iceberg table's, and not a view's or that of another kind of table."""
    parameters = row.parameters or {}
    return (
        parameters.get(TABLE_TYPE, "").upper() == ICEBERG
        and bool(parameters.get(METADATA_LOCATION))
        and row.tableType != VIRTUAL_VIEW
    )


def table_pointer(row: ttypes.Table) -> TablePointer:
    """The pointer that a row holds; raises for a view, and with the way to migrate it for another kind of table."""
    identifier = (row.dbName, row.tableName)
    name = ".".join(identifier)
    parameters = dict(row.parameters or {})
    if row.tableType == VIRTUAL_VIEW:
        raise NoSuchTableError(f"{name} is a view, not a table. Query it with Spark, or load it with load_view.")
    if not is_iceberg_table(row):
        if parameters.get(TABLE_TYPE, "").upper() == ICEBERG:
            raise NotAnIcebergTableError(
                f"Table {name} cannot be loaded: its row in the metastore is that of an Iceberg table, but its "
                f"parameter {METADATA_LOCATION} is {parameters.get(METADATA_LOCATION)!r}. Set it to the newest "
                f"metadata file, or remove the row and register that file."
            )
        kind = parameters.get(TABLE_TYPE) or parameters.get("spark.sql.sources.provider") or "Hive"
        raise NotAnIcebergTableError(
            f"Table {name} is not an Iceberg table: the metastore has it as a table of type {kind}. Read it with "
            f"Spark, or turn it into an Iceberg table in place: hms-iceberg migrate {name}"
        )
    location = (row.sd.location if row.sd else None) or ""
    return TablePointer(identifier, parameters[METADATA_LOCATION], parameters, location)


# --------------------------------------------------------------------------------------------------- writing


def empty_row(identifier: Identifier, properties: Mapping[str, str], table_type: str) -> ttypes.Table:
    """The row of a table or view that is created, before its metadata is put into it."""
    now = int(time.time())
    return ttypes.Table(
        tableName=identifier[1],
        dbName=identifier[0],
        owner=properties.get(OWNER) or current_user(),
        createTime=now,
        lastAccessTime=now,
        retention=2**31 - 1,
        partitionKeys=[],
        parameters={},
        tableType=table_type,
    )


def new_row(identifier: Identifier, new: MetadataVersion, settings: RowSettings) -> ttypes.Table:
    """The row of a table that is created: external, unpartitioned (Hive's partitions are not Iceberg's)."""
    row = empty_row(identifier, new.metadata.properties, EXTERNAL_TABLE)
    row.parameters["EXTERNAL"] = "TRUE"
    update_row(row, None, new, settings)
    # Read and removed by the server: without it, it lists every file below the table's location.
    row.parameters["DO_NOT_UPDATE_STATS"] = "true"
    return row


def update_row(row: ttypes.Table, base: MetadataVersion | None, new: MetadataVersion, settings: RowSettings) -> None:
    """Makes a row show `new`, in place; refuses a version of an encrypted table that names another key than the row."""
    table = f"{row.dbName}.{row.tableName}"
    metadata = new.metadata
    check_same_key(row.parameters or {}, metadata, new.location)
    for_hive = _hive_engine(metadata, settings)
    row.sd = storage_descriptor(metadata.schema(), metadata.location, for_hive, settings, table)
    parameters = dict(row.parameters or {})
    for key in _obsolete_properties(base, new):
        parameters.pop(_TRANSLATED.get(key, key), None)
    for key in (*_STATISTICS, *_DERIVED, "COLUMN_STATS_ACCURATE"):
        parameters.pop(key, None)
    for key, value in metadata.properties.items():
        if key not in _RESERVED:
            put_parameter(parameters, _TRANSLATED.get(key, key), value, settings, table)
    parameters[TABLE_TYPE] = ICEBERG
    parameters[METADATA_LOCATION] = new.location
    if metadata.table_uuid:
        parameters["uuid"] = metadata.table_uuid
    if base is not None:
        parameters[PREVIOUS_METADATA_LOCATION] = base.location
    if for_hive:
        parameters[_STORAGE_HANDLER] = f"{_HIVE}HiveIcebergStorageHandler"
    else:
        parameters.pop(_STORAGE_HANDLER, None)
    parameters.pop(MARK, None)  # whoever changes a row has finished the transaction that left it
    parameters.pop(METADATA_HASH, None)
    if parameters.get(ENCRYPTION_KEY_ID.name):
        parameters[METADATA_HASH] = metadata_hash(metadata)
    for key, shown in _derived(metadata, settings).items():
        put_parameter(parameters, key, shown, settings, table)
    row.parameters = parameters


def _obsolete_properties(base: MetadataVersion | None, new: MetadataVersion) -> list[str]:
    if base is None:
        return []
    return [key for key in base.metadata.properties if key not in new.metadata.properties and key not in _RESERVED]


def _derived(metadata: TableMetadata, settings: RowSettings) -> dict[str, str]:
    """Row properties computed from the metadata: statistics, and texts of schema, spec, order and snapshot."""
    shown = {"snapshot-count": str(len(metadata.snapshots))}
    snapshot = metadata.current_snapshot()
    if snapshot is not None:
        shown.update(
            {name: snapshot.summary[key] for name, key in _STATISTICS.items() if snapshot.summary.get(key) is not None}
        )
    if settings.max_value_length == 0:
        return shown
    shown["current-schema"] = shown_schema(metadata.schema())
    if not metadata.spec().is_unpartitioned():
        shown["default-partition-spec"] = _json(spec_to_json(metadata.spec()))
    if metadata.sort_order().fields:
        shown["default-sort-order"] = _json(sort_order_to_json(metadata.sort_order()))
    if snapshot is not None:
        shown.update(_shown_snapshot(snapshot))
    return shown


def _shown_snapshot(snapshot: Snapshot) -> dict[str, str]:
    summary = {key: value for key, value in snapshot.summary.items() if key != "operation"}
    return {
        "current-snapshot-id": str(snapshot.snapshot_id),
        "current-snapshot-timestamp-ms": str(snapshot.timestamp_ms),
        "current-snapshot-summary": _json(summary),
    }


def shown_schema(schema: Schema) -> str:
    """The value of the parameter `current-schema`."""
    return _json(schema_to_json(schema))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def put_parameter(parameters: dict[str, str], key: str, value: str, settings: RowSettings, table: str) -> None:
    """Sets a parameter; a value that the metastore's database cannot hold is left out with a warning."""
    limit = settings.max_value_length
    if len(key) <= _MAX_KEY_LENGTH and (not limit or len(value) <= limit):
        parameters[key] = value
        return
    parameters.pop(key, None)
    if (table, key) in _warned:  # once, and not with every commit
        return
    _warned.add((table, key))
    logger.warning(
        "Property %.60s of table %s is not shown in the metastore: it has %d characters, and the limit is %d for a "
        "value (iceberg.hive.table-property-max-size) and %d for a name. The table's metadata file has it",
        key,
        table,
        len(value),
        limit,
        _MAX_KEY_LENGTH,
    )


def _hive_engine(metadata: TableMetadata, settings: RowSettings) -> bool:
    is_set = HIVE_ENGINE.name in metadata.properties
    return HIVE_ENGINE.of(metadata.properties) if is_set else settings.hive_engine


def storage_descriptor(
    schema: Schema, location: str, for_hive: bool, settings: RowSettings, table: str
) -> ttypes.StorageDescriptor:
    """Columns, location and formats of a row; Iceberg's own formats of Hive if Hive is to read it."""
    input_format, output_format, serde = _FORMATS_FOR_HIVE if for_hive else _FORMATS
    options = ColumnOptions(settings.local_time_zone, settings.max_value_length)
    return ttypes.StorageDescriptor(
        cols=hive_columns(schema, options, table),
        location=location,
        inputFormat=input_format,
        outputFormat=output_format,
        compressed=False,
        numBuckets=0,
        serdeInfo=ttypes.SerDeInfo(serializationLib=serde, parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


ICEBERG_VIEW = "ICEBERG-VIEW"
_RESERVED_OF_VIEWS = (TABLE_TYPE, METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, "uuid", "current-schema", OWNER)


def is_iceberg_view(row: ttypes.Table) -> bool:
    """Whether a row is an Iceberg view's, and not a table's or a Hive view's."""
    parameters = row.parameters or {}
    return (
        (row.tableType or "").upper() == VIRTUAL_VIEW
        and parameters.get(TABLE_TYPE, "").upper() == ICEBERG_VIEW
        and bool(parameters.get(METADATA_LOCATION))
    )


def view_pointer(row: ttypes.Table) -> TablePointer:
    """The pointer that a view's row holds; raises NoSuchViewError, which names the kind, for another kind of row."""
    if not is_iceberg_view(row):
        kind = "a Hive view. Query it with Spark." if row.tableType == VIRTUAL_VIEW else "a table: load_table loads it."
        raise NoSuchViewError(f"There is no Iceberg view {row.dbName}.{row.tableName}: it is {kind}")
    parameters = dict(row.parameters)
    return TablePointer((row.dbName, row.tableName), parameters[METADATA_LOCATION], parameters)


def new_view_row(identifier: Identifier, new: ViewMetadataVersion, settings: RowSettings) -> ttypes.Table:
    row = empty_row(identifier, new.metadata.properties, VIRTUAL_VIEW)
    update_view_row(row, None, new, settings)
    return row


def update_view_row(
    row: ttypes.Table, base: ViewMetadataVersion | None, new: ViewMetadataVersion, settings: RowSettings
) -> None:
    """Makes a view's row show `new`, in place: columns, properties, and its query for those who read Hive's views."""
    name, metadata = f"{row.dbName}.{row.tableName}", new.metadata
    row.sd = storage_descriptor(metadata.schema(), metadata.location, False, settings, name)
    parameters = dict(row.parameters or {})
    for key in base.metadata.properties if base else ():
        if key not in metadata.properties and key not in _RESERVED_OF_VIEWS:
            parameters.pop(key, None)
    for key, value in metadata.properties.items():
        if key not in _RESERVED_OF_VIEWS:
            put_parameter(parameters, key, value, settings, name)
    parameters.update({TABLE_TYPE: ICEBERG_VIEW, METADATA_LOCATION: new.location, "uuid": metadata.view_uuid})
    if base is not None:
        parameters[PREVIOUS_METADATA_LOCATION] = base.location
    parameters.pop("current-schema", None)
    if settings.max_value_length:
        put_parameter(parameters, "current-schema", shown_schema(metadata.schema()), settings, name)
    row.parameters = parameters
    row.viewOriginalText = row.viewExpandedText = _shown_query(metadata.current_version())


def _shown_query(version: ViewVersion) -> str:
    """The query that a Hive view's row holds: Hive's, or else the first there is."""
    shown = version.sql_for("hive") or (version.sql_for(version.dialects[0]) if version.dialects else None)
    return shown.sql if shown else ""
