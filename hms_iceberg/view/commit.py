"""A change of a view, one way through: under the view's lock its metadata is read, changed, written and swapped in."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from hms_iceberg.errors import NoSuchViewError
from hms_iceberg.metastore import Identifier, ViewMetadataVersion, ViewMetastore
from hms_iceberg.spec.metadata.metadata_json import compress
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata, view_metadata_from_json, view_metadata_to_json
from hms_iceberg.spec.table_properties import VIEW_METADATA_COMPRESSION, metadata_folder
from hms_iceberg.storage import Storage, read_limit_of
from hms_iceberg.transaction.commit import Commit
from hms_iceberg.transaction.outcome import Newest
from hms_iceberg.transaction.retry import commit_policy
from hms_iceberg.transaction.workspace import FileWorkspace

# Views are compressed by default, tables are not: so does Iceberg's Java implementation.
_NUMBER = re.compile(r"(\d+)-[^/]*$")


def read_view(location: str, storage: Storage) -> ViewMetadataVersion:
    return ViewMetadataVersion(
        location, view_metadata_from_json(storage.read(location), location, read_limit_of(storage))
    )


def create_view(
    identifier: Identifier, metadata: ViewMetadata, metastore: ViewMetastore, storage: Storage
) -> ViewMetadataVersion:
    """Writes a new view's metadata and gives it its name; the file is deleted again if the name is taken, and stays if
    nobody can tell."""
    with view_commit(identifier, metastore, storage) as commit, metastore.lease(identifier) as lease:
        commit.swap(lease, None, _write(None, metadata, commit.workspace))
    return commit.made.version


def change_view(
    identifier: Identifier,
    view_uuid: str,
    change: Callable[[ViewMetadata], ViewMetadata],
    metastore: ViewMetastore,
    storage: Storage,
) -> ViewMetadataVersion:
    """Replaces a view's metadata by the result of `change` on the newest version, again after a conflict; writes
    nothing if it is the same. A view of the name with another UUID is left alone."""
    with view_commit(identifier, metastore, storage) as commit, metastore.lease(identifier) as lease:
        for attempt in commit_policy({}):
            with attempt:
                commit.workspace.begin_attempt()
                lease.acquire()
                newest = Newest.at(lease.load(), commit.read)
                if commit.is_made(newest):
                    break
                base = newest.version
                if base.metadata.view_uuid != view_uuid:
                    raise NoSuchViewError(
                        f"View {'.'.join(identifier)} was replaced by another view of that name. Load it anew."
                    )
                changed = change(base.metadata)
                if changed == base.metadata:
                    commit.leave(base)
                else:
                    commit.swap(lease, base, _write(base, changed, commit.workspace))
    return commit.made.version


def view_commit(identifier: Identifier, metastore: ViewMetastore, storage: Storage) -> Commit[ViewMetadataVersion]:
    """A commit to a view, which runs attempts and cleans up after them."""
    named = f"view {'.'.join(identifier)}"
    return Commit(named, identifier, metastore, lambda location: read_view(location, storage), FileWorkspace(storage))


def _write(base: ViewMetadataVersion | None, metadata: ViewMetadata, workspace: FileWorkspace) -> ViewMetadataVersion:
    codec = VIEW_METADATA_COMPRESSION.of(metadata.properties)
    match = _NUMBER.search(base.location.rsplit("/", 1)[-1]) if base else None
    number = int(match.group(1)) + 1 if match else 0
    extension = ".gz.metadata.json" if codec == "gzip" else ".metadata.json"
    folder = metadata_folder(metadata.location, metadata.properties)
    new = ViewMetadataVersion(f"{folder}/{number:05d}-{uuid.uuid4()}{extension}", metadata)
    data = view_metadata_to_json(metadata)
    workspace.create(new.location, compress(data) if codec == "gzip" else data)
    return new
