"""The views of a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hms_iceberg.metastore import Identifier, TablePointer, ViewMetadataVersion
from hms_iceberg.rest_client.channel import RestChannel, namespace_path
from hms_iceberg.rest_client.documents import Documents, RestNames
from hms_iceberg.spec.changes.differences import view_updates
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.view_metadata import ViewMetadata, view_metadata_from_json, view_version_to_json


class RestViews:
    """Implements `ViewMetastore` on a REST catalog.

    Args:
        channel: the catalog.
        documents: where metadata is kept that the server tells.
    """

    def __init__(self, channel: RestChannel, documents: Documents) -> None:
        self.names = RestNames(channel, documents, "view")
        self._documents = documents

    def load(self, identifier: Identifier) -> TablePointer:
        """The view's current pointer. See the port."""
        told, location = self.names.load(identifier)
        return TablePointer(identifier, location, {}, str(told["metadata"].get("location", "")))

    def shows(self, location: str, new: ViewMetadataVersion) -> bool:
        """Whether the cached metadata of a location is that of `new`. See the port."""
        content = self._documents.get(location)
        if location == new.location or content is None:
            return location == new.location
        found = view_metadata_from_json(content, location)
        return found.view_uuid == new.uuid and _essence(found) == _essence(new.metadata)

    @contextmanager
    def lease(self, identifier: Identifier) -> Iterator[RestViewLease]:
        """Opens a lease for one commit to a view. See the port."""
        yield RestViewLease(self, identifier)

    def list(self, namespace: str) -> list[Identifier]:
        """Views of a namespace, sorted. See the port."""
        return self.names.list(namespace)

    def names_file(self, metadata_location: str) -> bool:
        """True: this client cannot tell, and the server deletes files that are not needed. See the port."""
        return True

    def drop(self, identifier: Identifier) -> None:
        """Drops a view. See the port."""
        self.names.drop(identifier)

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a view. See the port."""
        self.names.rename(source, target)


class RestViewLease:
    """Implements `Lease` for views."""

    blocks_others = False
    refuses_late = False

    def __init__(self, views: RestViews, identifier: Identifier) -> None:
        self._views = views
        self._identifier = identifier

    def load(self) -> TablePointer:
        """The current pointer. See the port."""
        return self._views.load(self._identifier)

    def begin(self) -> None:
        """Nothing: there is nothing to be asked for ahead."""

    def acquire(self) -> None:
        """Nothing: the server locks when it commits."""

    def swap(self, base: ViewMetadataVersion | None, new: ViewMetadataVersion) -> ViewMetadataVersion:
        """Asks the server for a new view, for changes of one, or to register a file that is there. See the port."""
        names = self._views.names
        if not names.documents.is_prepared(new.location):
            told = names.register(self._identifier, new.location)
        elif base is None:
            metadata = new.metadata
            body: dict[str, Any] = {
                "name": self._identifier[-1],
                "location": metadata.location,
                "schema": schema_to_json(metadata.schema()),
                "view-version": view_version_to_json(metadata.current_version()),
                "properties": dict(metadata.properties),
            }
            told = names.channel.post(f"{namespace_path(self._identifier[0])}/views", body, "view")
        else:
            body = {
                "requirements": [{"type": "assert-view-uuid", "uuid": base.uuid}],
                "updates": view_updates(base.metadata, new.metadata),
            }
            told = names.channel.post(names.path(self._identifier), body, "commit")
        location, content = names.committed(told)
        return ViewMetadataVersion(location, view_metadata_from_json(content, location))


def _essence(metadata: ViewMetadata) -> tuple[object, ...]:
    version = metadata.current_version()
    return (metadata.schema().fields, version.representations, dict(metadata.properties), metadata.location)
