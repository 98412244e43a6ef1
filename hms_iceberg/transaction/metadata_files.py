"""Metadata JSON files: their names, their compression, the log of previous ones.

Source: Iceberg specification, "Metastore Tables" (file names), "Table Metadata Fields" (metadata-log), and "Naming for
GZIP compressed Metadata JSON files".
"""

from __future__ import annotations

import re
import uuid

from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.metadata.metadata_changes import append_metadata_log, suppress_intermediate_snapshots
from hms_iceberg.spec.metadata.metadata_json import compress, metadata_from_json, metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import (
    METADATA_COMPRESSION,
    METADATA_DELETE_AFTER_COMMIT,
    metadata_folder,
)
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.workspace import FileWorkspace

_VERSION = re.compile(r"(\d+)-[^/]*$")


def read_version(location: str, storage: Storage) -> MetadataVersion:
    """Reads a metadata file.

    Raises:
        MissingFileError: it is not there.
        CorruptMetadataError: it does not hold table metadata.
    """
    return MetadataVersion(location, metadata_from_json(storage.read(location), location))


def next_location(base_location: str | None, metadata: TableMetadata) -> str:
    """A fresh location for the version that follows the one at `base_location`: `<V>-<uuid>.metadata.json`."""
    version = 0
    if base_location is not None:
        match = _VERSION.search(base_location.rsplit("/", 1)[-1])
        version = int(match.group(1)) + 1 if match else 0
    extension = ".gz.metadata.json" if METADATA_COMPRESSION.of(metadata.properties) == "gzip" else ".metadata.json"
    folder = metadata_folder(metadata.location, metadata.properties)
    return f"{folder}/{version:05d}-{uuid.uuid4()}{extension}"


def write_version(base: MetadataVersion | None, metadata: TableMetadata, workspace: FileWorkspace) -> MetadataVersion:
    """Writes the metadata JSON that follows `base`, with `base` added to its metadata log."""
    if base is not None:
        metadata = suppress_intermediate_snapshots(metadata, base.metadata)
        metadata = append_metadata_log(metadata, base.location, base.metadata.last_updated_ms)
    location = next_location(base.location if base else None, metadata)
    data = metadata_to_json(metadata)
    if METADATA_COMPRESSION.of(metadata.properties) == "gzip":
        data = compress(data)
    workspace.create(location, data)
    return MetadataVersion(location, metadata)


def delete_dropped_versions(base: MetadataVersion, new: MetadataVersion, workspace: FileWorkspace) -> None:
    """Deletes the metadata files that fell off the log, if `write.metadata.delete-after-commit.enabled` says so.

    As in Apache Iceberg, nobody is asked: a table that was registered from one of them, and never changed, loses it. To
    ask the metastore for all its tables would cost more than the commit.
    """
    if not METADATA_DELETE_AFTER_COMMIT.of(new.metadata.properties):
        return
    kept = {entry.metadata_file for entry in new.metadata.metadata_log} | {new.location}
    for entry in base.metadata.metadata_log:
        if entry.metadata_file not in kept:
            workspace.delete_quietly(entry.metadata_file)
