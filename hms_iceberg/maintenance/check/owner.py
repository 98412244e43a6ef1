"""Whether a metadata file is that of the table whose row in the metastore names it."""

from __future__ import annotations

from hms_iceberg.maintenance.check.findings import OtherTable
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.table.needed.deleting import path_of


def check_owner(version: MetadataVersion, pointer: TablePointer) -> OtherTable | None:
    """The evidence that a metadata file belongs to another table; None if there is none.

    That is its UUID; of tables without one (format version 1 does not need it) the location.

    Args:
        version: the metadata, and where it is.
        pointer: what the metastore's row says.
    """
    row, own = pointer.properties.get("uuid"), version.metadata.table_uuid
    if row and own:
        return None if row == own else OtherTable(version.location, row, own)
    row, own = pointer.location, version.metadata.location
    if not row or path_of(row).rstrip("/") == path_of(own).rstrip("/"):
        return None
    return OtherTable(version.location, row, own, "location")
