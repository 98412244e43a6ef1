"""An Iceberg view's row in the Hive Metastore: that of a Hive view that points at view metadata, as Java makes it."""

from __future__ import annotations

from hms_iceberg.errors import NoSuchViewError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import (
    METADATA_LOCATION,
    OWNER,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE,
    VIRTUAL_VIEW,
    RowSettings,
    empty_row,
    put_parameter,
    shown_schema,
    storage_descriptor,
)
from hms_iceberg.metastore import Identifier, TablePointer, ViewMetadataVersion
from hms_iceberg.spec.views.view_metadata import ViewVersion

ICEBERG_VIEW = "ICEBERG-VIEW"
_RESERVED = (TABLE_TYPE, METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, "uuid", "current-schema", OWNER)


def is_iceberg_view(row: ttypes.Table) -> bool:
    """Whether a row is an Iceberg view's, and not a table's or a Hive view's."""
    parameters = row.parameters or {}
    return (
        (row.tableType or "").upper() == VIRTUAL_VIEW
        and parameters.get(TABLE_TYPE, "").upper() == ICEBERG_VIEW
        and bool(parameters.get(METADATA_LOCATION))
    )


def view_pointer(row: ttypes.Table) -> TablePointer:
    """The pointer that a view's row holds.

    Raises:
        NoSuchViewError: the row is of something else; says of what.
    """
    if not is_iceberg_view(row):
        kind = "a Hive view. Query it with Spark." if row.tableType == VIRTUAL_VIEW else "a table: load_table loads it."
        raise NoSuchViewError(f"There is no Iceberg view {row.dbName}.{row.tableName}: it is {kind}")
    parameters = dict(row.parameters)
    return TablePointer((row.dbName, row.tableName), parameters[METADATA_LOCATION], parameters)


def new_view_row(identifier: Identifier, new: ViewMetadataVersion, settings: RowSettings) -> ttypes.Table:
    """The row of a view that is created.

    Args:
        identifier: the name, as (namespace, name).
        new: the new version.
        settings: how rows show metadata.
    """
    row = empty_row(identifier, new.metadata.properties, VIRTUAL_VIEW)
    update_view_row(row, None, new, settings)
    return row


def update_view_row(
    row: ttypes.Table, base: ViewMetadataVersion | None, new: ViewMetadataVersion, settings: RowSettings
) -> None:
    """Makes a view's row show `new`, in place: columns, properties, and its query for those who read Hive's views.

    Args:
        row: the row, which is changed.
        base: the version that has to be current still; None to create the view.
        new: the new version.
        settings: how rows show metadata.
    """
    name, metadata = f"{row.dbName}.{row.tableName}", new.metadata
    row.sd = storage_descriptor(metadata.schema(), metadata.location, False, settings, name)
    parameters = dict(row.parameters or {})
    for key in base.metadata.properties if base else ():
        if key not in metadata.properties and key not in _RESERVED:
            parameters.pop(key, None)
    for key, value in metadata.properties.items():
        if key not in _RESERVED:
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
