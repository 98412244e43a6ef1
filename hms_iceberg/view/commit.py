"""A change of a view, one way through: under the view's lock its metadata is read, changed, written and swapped in."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable

from hms_iceberg.errors import CommitStateUnknownError, ConfigurationError, IcebergError, NoSuchViewError
from hms_iceberg.metastore import Identifier, Lease, ViewMetadataVersion, ViewMetastore
from hms_iceberg.spec.metadata.metadata_json import compress
from hms_iceberg.spec.table_properties import metadata_folder, text_property
from hms_iceberg.spec.views.view_metadata import ViewMetadata
from hms_iceberg.spec.views.view_metadata_json import view_metadata_from_json, view_metadata_to_json
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.retry import commit_policy

logger = logging.getLogger(__name__)

# Views are compressed by default, tables are not: so does Iceberg's Java implementation.
_COMPRESSION = ("write.metadata.compression-codec", "gzip")
_NUMBER = re.compile(r"(\d+)-[^/]*$")


def read_view(location: str, storage: Storage) -> ViewMetadataVersion:
    """Reads a view's metadata file.

    Raises:
        MissingFileError: it is not there.
        CorruptMetadataError: it does not hold view metadata.
    """
    return ViewMetadataVersion(location, view_metadata_from_json(storage.read(location), location))


def create_view(
    identifier: Identifier, metadata: ViewMetadata, metastore: ViewMetastore, storage: Storage
) -> ViewMetadataVersion:
    """Writes a new view's metadata and gives it its name.

    Raises:
        ViewAlreadyExistsError, TableAlreadyExistsError: the name is taken; the file is deleted again.
        CommitStateUnknownError: nobody can tell; the file stays.
    """
    with metastore.lease(identifier) as lease:
        return _swap(lease, None, metadata, storage)


def change_view(
    identifier: Identifier,
    view_uuid: str,
    change: Callable[[ViewMetadata], ViewMetadata],
    metastore: ViewMetastore,
    storage: Storage,
) -> ViewMetadataVersion:
    """Replaces a view's metadata by what `change` makes of the newest; nothing is written if that is the same.

    Args:
        identifier: the view's name.
        view_uuid: the view that is meant; another one of that name is left alone.
        change: called again on newer metadata if another writer was first.
        metastore: where the name is.
        storage: where the files are.

    Raises:
        NoSuchViewError: the view is gone, or its name is another view's by now.
        CommitFailedError: the lock was not to be had in time, or others were first in every attempt.
        CommitStateUnknownError: nobody can tell; no file was deleted.
    """

    def attempt(lease: Lease[ViewMetadataVersion]) -> ViewMetadataVersion:
        lease.acquire()
        base = read_view(lease.load().metadata_location, storage)
        if base.metadata.view_uuid != view_uuid:
            raise NoSuchViewError(
                f"View {'.'.join(identifier)} was replaced by another view of that name. Load it anew."
            )
        changed = change(base.metadata)
        return base if changed == base.metadata else _swap(lease, base, changed, storage)

    with metastore.lease(identifier) as lease:
        return commit_policy({})(attempt, lease)


def _swap(
    lease: Lease[ViewMetadataVersion], base: ViewMetadataVersion | None, metadata: ViewMetadata, storage: Storage
) -> ViewMetadataVersion:
    codec = text_property(metadata.properties, _COMPRESSION).lower()
    if codec not in ("none", "gzip"):
        raise ConfigurationError(f"View property {_COMPRESSION[0]!r}: expected 'none' or 'gzip', got {codec!r}.")
    match = _NUMBER.search(base.location.rsplit("/", 1)[-1]) if base else None
    number = int(match.group(1)) + 1 if match else 0
    extension = ".gz.metadata.json" if codec == "gzip" else ".metadata.json"
    folder = metadata_folder(metadata.location, metadata.properties)
    new = ViewMetadataVersion(f"{folder}/{number:05d}-{uuid.uuid4()}{extension}", metadata)
    data = view_metadata_to_json(metadata)
    storage.create(new.location, compress(data) if codec == "gzip" else data)
    try:
        lease.swap(base, new)
    except CommitStateUnknownError:
        raise
    except IcebergError:
        delete_quietly(new.location, storage)
        raise
    return new


def delete_quietly(location: str, storage: Storage) -> None:
    """Deletes a metadata file that nothing refers to; a failure is logged only."""
    try:
        storage.delete(location)
    except IcebergError as error:
        logger.warning("The unused file %s could not be deleted: %s", location, error)
