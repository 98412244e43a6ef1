"""Every change of table metadata, as pure functions that return new, checked metadata.

Changes of the definition (schema, spec, order, format version) are in metadata_definition.py, changes of snapshots and
references in metadata_snapshots.py; all are exported here. `at_ms` is the time of a change in milliseconds since 1970,
now by default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hms_iceberg.spec.metadata.format_rules import (
    FORMAT_VERSION_PROPERTY,
    NEW_TABLE_PROPERTIES,
    RESERVED_PROPERTIES,
    check_schema_version,
    split_properties,
)
from hms_iceberg.spec.metadata.metadata_definition import (
    add_schema,
    add_sort_order,
    add_spec,
    assign_uuid,
    changed,
    new_table_metadata,
    now_ms,
    remove_schemas,
    remove_specs,
    replace_table_metadata,
    set_current_schema,
    set_default_sort_order,
    set_default_spec,
    set_location,
    upgrade_format_version,
)
from hms_iceberg.spec.metadata.metadata_snapshots import (
    add_encryption_key,
    add_snapshot,
    append_metadata_log,
    previous_versions_max,
    remove_encryption_key,
    remove_partition_statistics,
    remove_ref,
    remove_refs,
    remove_snapshots,
    remove_statistics,
    require_ref,
    require_snapshot,
    set_branch_snapshot,
    set_partition_statistics,
    set_ref,
    set_statistics,
    suppress_intermediate_snapshots,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata

__all__ = [
    "FORMAT_VERSION_PROPERTY",
    "NEW_TABLE_PROPERTIES",
    "RESERVED_PROPERTIES",
    "add_encryption_key",
    "add_schema",
    "add_snapshot",
    "add_sort_order",
    "add_spec",
    "append_metadata_log",
    "assign_uuid",
    "changed",
    "check_schema_version",
    "new_table_metadata",
    "now_ms",
    "previous_versions_max",
    "remove_encryption_key",
    "remove_partition_statistics",
    "remove_properties",
    "remove_ref",
    "remove_refs",
    "remove_schemas",
    "remove_snapshots",
    "remove_specs",
    "remove_statistics",
    "replace_table_metadata",
    "require_ref",
    "require_snapshot",
    "set_branch_snapshot",
    "set_current_schema",
    "set_default_sort_order",
    "set_default_spec",
    "set_location",
    "set_partition_statistics",
    "set_properties",
    "set_ref",
    "set_statistics",
    "split_properties",
    "suppress_intermediate_snapshots",
    "upgrade_format_version",
]


def set_properties(metadata: TableMetadata, updates: Mapping[str, Any], at_ms: int | None = None) -> TableMetadata:
    """The metadata with properties set; `format-version` among them upgrades the table."""
    texts, version = split_properties(updates)
    if version is not None:
        metadata = upgrade_format_version(metadata, version, at_ms)
    properties = {**metadata.properties, **texts}
    return metadata if properties == metadata.properties else changed(metadata, at_ms, properties=properties)


def remove_properties(metadata: TableMetadata, names: Collection[str], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some properties; names that it does not have are ignored."""
    properties = {name: value for name, value in metadata.properties.items() if name not in set(names)}
    return metadata if properties == metadata.properties else changed(metadata, at_ms, properties=properties)
