"""Every file that a table names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.updates.machinery.live_files import live_files
from hms_iceberg.updates.machinery.manifests.listed_manifests import manifests_of_all
from hms_iceberg.updates.machinery.manifests.reading_ahead import OnUnreadable


@dataclass(frozen=True)
class TableFiles:
    """The files that a version of a table names, in an order in which they can be deleted.

    Attributes:
        data: data files and delete files.
        metadata: statistics, manifests, manifest lists, earlier versions, and the version itself last.
    """

    data: tuple[str, ...]
    metadata: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        """All of them."""
        yield from self.data
        yield from self.metadata


def files_of(
    metadata: TableMetadata, metadata_location: str, storage: Storage, on_unreadable: OnUnreadable = None
) -> TableFiles:
    """Every file that a version of a table names: of all snapshots, of its log, and statistics.

    Args:
        metadata: the version.
        metadata_location: its metadata file.
        storage: where manifests are.
        on_unreadable: gets the error of a manifest list or manifest that cannot be read, which is passed over; raised
            if it is None.

    Raises:
        StorageError, CorruptManifestError: a manifest list or manifest cannot be read.
    """
    manifests = manifests_of_all(metadata.snapshots, storage, on_unreadable)
    data: dict[str, None] = {}
    for frame in live_files(manifests.values(), metadata, storage, on_unreadable):
        data.update(dict.fromkeys(frame["file_path"].to_list()))
    lists = [snapshot.manifest_list for snapshot in metadata.snapshots if snapshot.manifest_list is not None]
    statistics = [file.statistics_path for file in metadata.statistics]
    statistics += [file.statistics_path for file in metadata.partition_statistics]
    versions = [entry.metadata_file for entry in metadata.metadata_log]
    return TableFiles(tuple(data), (*statistics, *manifests, *lists, *versions, metadata_location))
