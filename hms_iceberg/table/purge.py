"""Deleting every file of a table that was dropped."""

from __future__ import annotations

import logging
import uuid

from hms_iceberg.errors import IcebergError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.updates.machinery.manifests.manifest_files import entries_of, manifest_list_of

logger = logging.getLogger(__name__)


def check_right_to_purge(metadata_location: str, storage: Storage) -> None:
    """Finds out, with a file of no bytes beside the metadata, whether a table's files could be deleted.

    Raises:
        StorageDeniedError: this user lacks the right.
    """
    probe = f"{metadata_location.rpartition('/')[0]}/.purge-{uuid.uuid4().hex[:12]}"
    storage.create(probe, b"")
    storage.delete(probe)


def purge_files(metadata: TableMetadata, metadata_location: str, storage: Storage) -> int:
    """Deletes data files, delete files, statistics, manifests and metadata files of all snapshots.

    The metadata files go last, so that a purge that was interrupted can be repeated from the metadata file.

    Returns the number of files deleted; what cannot be read or deleted is logged and skipped.
    """
    data: dict[str, None] = {}
    manifests: dict[str, None] = {}
    lists: dict[str, None] = {}
    for snapshot in metadata.snapshots:
        try:
            for manifest in manifest_list_of(snapshot, storage):
                if manifest.manifest_path not in manifests:
                    manifests[manifest.manifest_path] = None
                    data.update((entry.data_file.file_path, None) for entry in entries_of(manifest, storage))
        except IcebergError as error:
            logger.warning("Could not list the files of snapshot %d: %s", snapshot.snapshot_id, error)
        if snapshot.manifest_list:
            lists[snapshot.manifest_list] = None
    statistics = [item.statistics_path for item in metadata.statistics]
    statistics += [item.statistics_path for item in metadata.partition_statistics]
    versions = [entry.metadata_file for entry in metadata.metadata_log]
    deleted = 0
    for location in (*data, *statistics, *manifests, *lists, *versions, metadata_location):
        try:
            storage.delete(location)
            deleted += 1
        except IcebergError as error:
            logger.warning("Could not delete %s: %s", location, error)
    return deleted
