"""Files below a table's folder that nothing of the table names.

Source: Iceberg documentation, "Spark Procedures", `remove_orphan_files`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from hms_iceberg.arrow.storage.arrow_storage import is_unfinished
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.maintenance.deleting import delete_files, path_of
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.scan.planner import Planner, manifest_source
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import GC_ENABLED, bool_property
from hms_iceberg.storage import FileInfo, Storage
from hms_iceberg.table.changes.manage_snapshots import Time
from hms_iceberg.table.reading.time_travel import milliseconds
from hms_iceberg.table.table import Table

logger = logging.getLogger(__name__)

_THREE_DAYS_MS = 3 * 24 * 60 * 60 * 1000
_EQUAL_SCHEMES = {"s3n,s3a": "s3"}
_VERSION_HINT = "version-hint.text"
# A scheme and an authority.
_Prefix = tuple[str, str]


class PrefixMismatch(str, Enum):
    """What is done with a file whose path the table names with another scheme or authority."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


@dataclass(frozen=True)
class OrphanFiles:
    """What a search for orphan files found.

    Attributes:
        locations: the orphans, as they were listed.
        bytes: of all of them.
        deleted: how many were deleted; none in a dry run.
        left: those that could not be deleted, by location with the reason.
        other_tables: folders of other tables below the one that was searched; what is in them was left alone.
    """

    locations: tuple[str, ...]
    bytes: int
    deleted: int
    left: dict[str, str]
    other_tables: tuple[str, ...]


def remove_orphan_files(
    table: Table,
    *,
    older_than: Time | None = None,
    location: str | None = None,
    dry_run: bool = False,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: str | PrefixMismatch = PrefixMismatch.ERROR,
    workers: int = 8,
    files: Iterable[FileInfo] | None = None,
) -> OrphanFiles:
    """Deletes files below a table's folder that no metadata of the table names.

    Named are the data files, delete files, manifests and manifest lists of every snapshot, statistics, the current
    metadata file and those of its log. The folder is listed first and the table loaded afterwards, so that what is
    committed meanwhile is known. Files and folders that start with `_` or `.` are left alone, unless they are
    partitions of the table or files that a killed process left half written, and so are folders of other tables.

    Args:
        table: the table, which moves to its newest version.
        older_than: only files that were last changed before; by default three days ago. A file that a running write
            has not committed yet is named by nothing either: leave time for it.
        location: the folder to search; the table's location by default.
        dry_run: only find them.
        equal_schemes: schemes that mean the same, such as `{"s3n,s3a": "s3"}`, which holds unless given.
        equal_authorities: authorities that mean the same, such as `{"nn1:8020,nn2:8020": "nn"}`.
        prefix_mismatch_mode: `error`, `ignore` or `delete`: what is done with files of which the table names the path
            with another scheme or authority.
        workers: files that are deleted at once.
        files: the files to look at, from an inventory of the store for example, in place of a listing; if a
            location is given, only those below it.

    Raises:
        UnsupportedError: the table's property `gc.enabled` is false: its files may belong to others.
        InvalidInputError: the mode is none, or there are files of another scheme or authority; nothing was deleted.
        StorageError, CorruptManifestError: what the table names cannot be told; nothing was deleted.
    """
    name = ".".join(table.identifier)
    if not bool_property(table.metadata.properties, GC_ENABLED):
        raise UnsupportedError(
            f"Cannot remove orphan files of table {name}: its property gc.enabled is false, for its files may belong "
            "to others. Set it to true first, if they do not."
        )
    mode = _mode(prefix_mismatch_mode, name)
    before = int(time.time() * 1000) - _THREE_DAYS_MS if older_than is None else milliseconds(older_than)
    folder = (location or table.location()).rstrip("/")
    if files is None:
        partitions = _partition_folders(table.metadata)
        listing = table.storage.list(folder)
        found = [file for file in listing if not _is_hidden(file.location[len(folder) :], partitions)]
    else:
        found = [file for file in files if location is None or file.location.startswith(f"{folder}/")]
    listed, others = _without_other_tables(found, table.location())
    metadata = table.refresh().metadata
    named = _Named(
        named_files(metadata, table.metadata_location, table.storage),
        _flattened(_EQUAL_SCHEMES if equal_schemes is None else equal_schemes),
        _flattened(equal_authorities or {}),
    )
    orphans: list[FileInfo] = []
    mismatches: list[str] = []
    for file in listed:
        match named.match(file.location):
            case "same":
                continue
            case "other prefix" if mode is not PrefixMismatch.DELETE:
                mismatches.append(file.location)
                continue
        if file.modified_ms < before:
            orphans.append(file)
    if mismatches and mode is PrefixMismatch.ERROR:
        raise InvalidInputError(
            f"Cannot remove orphan files of table {name}: {len(mismatches)} files have a path that the table names "
            f"with another scheme or authority, the first is {mismatches[0]}. Say which mean the same (equal_schemes, "
            "equal_authorities), or set prefix_mismatch_mode to ignore to leave these files, or to delete."
        )
    locations = tuple(file.location for file in orphans)
    left = {} if dry_run else delete_files(table, locations, workers)
    deleted = 0 if dry_run else len(locations) - len(left)
    logger.info("Found %d orphan files of %s, deleted %d", len(locations), name, deleted)
    return OrphanFiles(locations, sum(file.size for file in orphans), deleted, left, others)


def named_files(metadata: TableMetadata, metadata_location: str, storage: Storage) -> Iterator[str]:
    """Every file that a table names.

    Args:
        metadata: the table.
        metadata_location: its metadata file.
        storage: where manifests are.

    Raises:
        StorageError, CorruptManifestError: a manifest list or manifest cannot be read.
    """
    yield metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (file.statistics_path for file in metadata.statistics)
    yield from (file.statistics_path for file in metadata.partition_statistics)
    planner = Planner(metadata, metadata.schema(), AlwaysTrue(), manifest_source(metadata, storage, None))
    manifests = {}
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
        manifests.update({manifest.manifest_path: manifest for manifest in manifests_of(snapshot, storage)})
    yield from manifests
    data = [each for each in manifests.values() if each.content is ManifestContent.DATA]
    deletes = [each for each in manifests.values() if each.content is ManifestContent.DELETES]
    yield from planner.data_files(data, {}).frame["file_path"].to_list()
    yield from planner.delete_files(deletes).frame["file_path"].to_list()


class _Named:
    """The files that a table names, by folder: a folder is taken apart once, not each of its files."""

    def __init__(self, locations: Iterable[str], schemes: Mapping[str, str], authorities: Mapping[str, str]) -> None:
        self._schemes = schemes
        self._authorities = authorities
        self._folders: dict[str, tuple[str, _Prefix]] = {}
        self._names: dict[str, dict[_Prefix, set[str]]] = {}
        for location in locations:
            path, prefix, name = self._parts(location)
            self._names.setdefault(path, {}).setdefault(prefix, set()).add(name)

    def match(self, location: str) -> str:
        """`same`, `other prefix` or `none`."""
        path, prefix, name = self._parts(location)
        named = [each for each, names in self._names.get(path, {}).items() if name in names]
        return "none" if not named else "same" if prefix in named else "other prefix"

    def _parts(self, location: str) -> tuple[str, _Prefix, str]:
        """The path of its folder, its scheme and authority as they are compared, and its name."""
        folder, _, name = location.rpartition("/")
        found = self._folders.get(folder)
        if found is None or "\0" in name:
            parsed = parse_location(location)
            scheme = self._schemes.get(parsed.scheme, parsed.scheme)
            prefix = scheme, self._authorities.get(parsed.authority, parsed.authority)
            found = self._folders[folder] = path_of(location).rpartition("/")[0], prefix
        return *found, name


def _flattened(equal: Mapping[str, str]) -> dict[str, str]:
    return {each.strip(): value.strip() for names, value in equal.items() for each in names.split(",")}


def _mode(mode: str | PrefixMismatch, name: str) -> PrefixMismatch:
    try:
        return PrefixMismatch(mode.lower() if isinstance(mode, str) else mode)
    except ValueError:
        raise InvalidInputError(
            f"Cannot remove orphan files of table {name}: prefix_mismatch_mode is {mode!r}, expected error, ignore or "
            "delete."
        ) from None


def _without_other_tables(listed: list[FileInfo], own: str) -> tuple[list[FileInfo], tuple[str, ...]]:
    """The files to look at, and the folders of other tables."""
    roots = {
        file.location.rsplit("/metadata/", 1)[0]
        for file in listed
        if "/metadata/" in file.location and file.location.endswith((".metadata.json", ".metadata.json.gz"))
    }
    others = tuple(sorted(root for root in roots if path_of(root) != path_of(own.rstrip("/"))))
    if not others:
        return listed, others
    inside = tuple(f"{root}/" for root in others)
    return [file for file in listed if not file.location.startswith(inside)], others


def _partition_folders(metadata: TableMetadata) -> tuple[str, ...]:
    """How folders of the table's partitions begin."""
    return tuple(f"{field.name}=" for spec in metadata.partition_specs for field in spec.fields)


def _is_hidden(path: str, partitions: tuple[str, ...]) -> bool:
    """Whether a part of the path says that it is no data: `_x` and `.x`, but not a partition's `_x=1`."""
    if path.endswith(_VERSION_HINT):
        return True
    if "/_" not in path and "/." not in path:
        return False
    folder, _, name = path.rpartition("/")
    parts = folder.split("/") if is_unfinished(name) else path.split("/")
    return any(part.startswith(("_", ".")) and not part.startswith(partitions) for part in parts)
