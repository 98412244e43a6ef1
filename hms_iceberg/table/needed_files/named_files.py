"""Every file that a table names, the folders that it writes to, and deleting files that nothing needs."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hms_iceberg.arrow.storage.data_locations import LocationRules
from hms_iceberg.errors import IcebergError
from hms_iceberg.metastore import TableRow
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Places, Storage, TellsRights
from hms_iceberg.updates.machinery.file_matching import live_files
from hms_iceberg.updates.machinery.listed_manifests import OnUnreadable, manifests_of_all

METADATA_LOCATION = "metadata_location"
"""The property of a row that tells where a table's metadata file is."""


@dataclass(frozen=True)
class OwnFolders:
    """The folders that a table writes to, on whatever server (see `Place.anywhere`)."""

    location: Place  # the table's folder
    metadata: frozenset[Place]  # where its metadata files are, and where new ones go
    data: Place  # where new data files go

    @classmethod
    def of(cls, metadata: TableMetadata, metadata_location: str, places: Places) -> OwnFolders:
        return cls.by_properties(metadata.location, metadata.properties, metadata_location, places)

    @classmethod
    def by_properties(
        cls, location: str, properties: Mapping[str, str], metadata_location: str, places: Places
    ) -> OwnFolders:
        """The folders of a table of some properties."""
        folders = {metadata_folder(location, properties), metadata_location.rpartition("/")[0]}
        data = LocationRules.of(location, properties).folder
        metadata = frozenset(places.anywhere(folder) for folder in folders if folder)
        return cls(places.anywhere(location), metadata, places.anywhere(data))

    def all(self) -> Iterator[Place]:
        yield self.location
        yield from self.metadata
        yield self.data


def folders_of_row(row: TableRow, places: Places) -> Iterator[Place]:
    """The folders that a row of a metastore tells of: an Iceberg table's own ones, or where another table is."""
    folders: Iterable[Place] = ()
    if row.is_iceberg:
        file = row.properties.get(METADATA_LOCATION, "")
        folders = OwnFolders.by_properties(row.location, row.properties, file, places).all()
    elif row.location:
        folders = (places.anywhere(row.location),)
    # A row without a location says nothing of the root of all.
    return (folder for folder in folders if folder.path)


def is_in_any(place: Place, folders: Iterable[Place]) -> bool:
    """Whether a place is one of some folders, or in one of them."""
    return any(place.is_in(folder) for folder in folders)


@dataclass(frozen=True)
class TableFiles:
    """The files that a version of a table names, in an order in which they can be deleted."""

    data: tuple[str, ...]  # data files and delete files
    metadata: tuple[str, ...]  # statistics, manifests, manifest lists, earlier versions, and the version itself last

    def __iter__(self) -> Iterator[str]:
        yield from self.data
        yield from self.metadata


def files_of(
    metadata: TableMetadata, metadata_location: str, storage: Storage, on_unreadable: OnUnreadable = None
) -> TableFiles:
    """Every file that a version of a table names, once each, in an order in which they can be deleted: data and delete
    files, then what describes them, the metadata file last. Without `on_unreadable`, errors are raised."""
    manifests = manifests_of_all(metadata.snapshots, storage, on_unreadable)
    data: dict[str, None] = {}
    for frame in live_files(manifests.values(), metadata, storage, on_unreadable):
        data.update(dict.fromkeys(frame["file_path"].to_list()))
    return TableFiles(tuple(data), _describing(metadata, metadata_location, manifests))


def each_file_of(metadata: TableMetadata, metadata_location: str, storage: Storage) -> Iterator[str]:
    """The files of `files_of`, read as they are asked for; some of them several times."""
    manifests = manifests_of_all(metadata.snapshots, storage, None)
    for frame in live_files(manifests.values(), metadata, storage):
        yield from frame["file_path"].to_list()
    yield from _describing(metadata, metadata_location, manifests)


def _describing(metadata: TableMetadata, metadata_location: str, manifests: Iterable[str]) -> tuple[str, ...]:
    """The files that describe the data, in an order in which they can be deleted."""
    lists = [snapshot.manifest_list for snapshot in metadata.snapshots if snapshot.manifest_list is not None]
    statistics = [file.statistics_path for file in metadata.statistics]
    statistics += [file.statistics_path for file in metadata.partition_statistics]
    versions = [entry.metadata_file for entry in metadata.metadata_log]
    return (*statistics, *manifests, *lists, *versions, metadata_location)


logger = logging.getLogger(__name__)

_DELETERS = 8
# Files that one of them takes at a time: to hand over each costs more than to delete it on a local disk.
_AT_ONCE = 100


def delete_files(storage: Storage, locations: Iterable[str], name: str, workers: int = _DELETERS) -> dict[str, str]:
    """Deletes files, several at once; one that is gone counts as deleted. Others are returned, each with the reason."""

    def delete(part: Sequence[str]) -> dict[str, str]:
        left = {}
        for location in part:
            try:
                storage.delete(location)
            except IcebergError as error:
                logger.warning("Could not delete %s, which %s does not need: %s", location, name, error)
                left[location] = str(error)
        return left

    every = list(locations)
    size = min(_AT_ONCE, max(1, len(every) // (2 * workers)))  # of few files each gets some
    parts = [every[start : start + size] for start in range(0, len(every), size)]
    with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-delete") as pool:
        return {location: reason for left in pool.map(delete, parts) for location, reason in left.items()}


# -------------------------------------------------------------------------------------- tables that were dropped


_MOST_ASKED = 1000


def check_right_to_purge(metadata_location: str, storage: Storage) -> None:
    """Finds out, with a file of no bytes beside the metadata, whether a table's files could be deleted."""
    probe = f"{metadata_location.rpartition('/')[0]}/.purge-{uuid.uuid4().hex[:12]}"
    storage.create(probe, b"")
    storage.delete(probe)


def check_rights_to_delete(files: Iterable[str], storage: Storage, kept: Mapping[str, str]) -> None:
    """Finds out whether this user may delete files that may be of others, in folders with the sticky bit. Of very many
    files a spread is asked for."""
    if isinstance(storage, TellsRights):
        doomed = [location for location in files if location not in kept]
        for location in doomed[:: 1 + len(doomed) // _MOST_ASKED]:
            storage.check_right_to_delete(location)


def purge_files(files: Iterable[str], storage: Storage, name: str, kept: Mapping[str, str]) -> int:
    """Deletes files of a dropped table in their order, the metadata file last so that it can be repeated, but for those
    `kept` for others; returns how many, and logs what stays."""
    for who, count in Counter(kept.values()).items():
        logger.warning("Dropped table %s, and left %d of its files, which %s needs", name, count, who)
    doomed = [location for location in files if location not in kept]
    return len(doomed) - len(delete_files(storage, doomed, name, workers=1))


def log_unreadable(error: Exception) -> None:
    """Logs a file that cannot be read; the files that it names stay."""
    logger.warning("Could not list files of a table: %s", error)
