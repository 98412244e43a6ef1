"""The paths in table metadata.

Source: Iceberg specification, "Table Metadata Fields", "Snapshots", "Path Construction".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hms_iceberg.maintenance.relocation.prefixes import PrefixChange
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.table_properties import DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH

# Properties that name folders.
_FOLDERS = tuple(each.name for each in (DATA_PATH, METADATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH))


def with_new_paths(metadata: TableMetadata, change: PrefixChange) -> TableMetadata:
    """Table metadata in which every path has its new prefix.

    Args:
        metadata: the table.
        change: what becomes of paths.

    Raises:
        InvalidInputError: a path is not under the prefix.
    """
    new = change.new_path
    return replace(
        metadata,
        location=new(metadata.location),
        properties=_properties(metadata.properties, change),
        snapshots=tuple(_snapshot(snapshot, change) for snapshot in metadata.snapshots),
        metadata_log=tuple(replace(each, metadata_file=new(each.metadata_file)) for each in metadata.metadata_log),
        statistics=tuple(replace(each, statistics_path=new(each.statistics_path)) for each in metadata.statistics),
        partition_statistics=tuple(
            replace(each, statistics_path=new(each.statistics_path)) for each in metadata.partition_statistics
        ),
    )


def _properties(properties: Mapping[str, str], change: PrefixChange) -> dict[str, str]:
    """Relative folders stay what they are: they move with the table."""

    def moved(name: str, value: str) -> str:
        is_absolute = value.startswith("/") or value.split("/", 1)[0].endswith(":")
        return change.new_path(value) if name in _FOLDERS and is_absolute else value

    return {name: moved(name, value) for name, value in properties.items()}


def _snapshot(snapshot: Snapshot, change: PrefixChange) -> Snapshot:
    listed, manifests = snapshot.manifest_list, snapshot.manifest_locations
    return replace(
        snapshot,
        manifest_list=None if listed is None else change.new_path(listed),
        manifest_locations=None if manifests is None else tuple(map(change.new_path, manifests)),
    )
