"""Paths under another prefix, and all paths in table metadata.

Source: Iceberg specification, "Table Metadata Fields", "Snapshots", "Path Construction".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.table_properties import DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH


@dataclass(frozen=True)
class PrefixChange:
    """Replaces the prefix of paths.

    Attributes:
        source: the prefix that goes; with or without a slash at its end.
        target: what takes its place.
        staging: the folder in which files that are written anew lie until they are copied.
    """

    source: str
    target: str
    staging: str

    def new_path(self, path: str) -> str:
        """The path under the target.

        Raises:
            InvalidInputError: it is not under the source.
        """
        return _joined(self.target, self._relative(path))

    def staged_path(self, path: str) -> str:
        """Where a file that is written anew is staged, in the same folders as under the source.

        Raises:
            InvalidInputError: it is not under the source.
        """
        return _joined(self.staging, self._relative(path))

    def _relative(self, path: str) -> str:
        """What follows the source; nothing for the source itself."""
        source = self.source.rstrip("/") + "/"
        if path.rstrip("/") + "/" == source:
            return ""
        if not path.startswith(source):
            raise InvalidInputError(
                f"Cannot replace the prefix of {path}: it is not under {self.source}. Every path of the table has to "
                "be; give a prefix that all of them have."
            )
        return path[len(source) :]


def _joined(folder: str, relative: str) -> str:
    return f"{folder.rstrip('/')}/{relative}" if relative else folder


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
