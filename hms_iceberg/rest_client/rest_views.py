"""The views of a REST catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hms_iceberg.errors import NoSuchTableError, NoSuchViewError
from hms_iceberg.metastore import Identifier, TablePointer, ViewMetadataVersion
from hms_iceberg.rest_client.channel import RestChannel, namespace_path, table_path
from hms_iceberg.rest_client.documents import Documents
from hms_iceberg.spec.changes.differences import view_updates
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.views.view_metadata import ViewMetadata
from hms_iceberg.spec.views.view_metadata_json import view_metadata_from_json, view_version_to_json


class RestViews:
    """Implements `ViewMetastore` on a REST catalog.

    Args:
        channel: the catalog.
        documents: where metadata is kept that the server tells.
    """

    def __init__(self, channel: RestChannel, documents: Documents) -> None:
        self.channel = channel
        self.documents = documents

    def load(self, identifier: Identifier) -> TablePointer:
        """The view's current pointer. See the port."""
        try:
            told = self.channel.get(_path(identifier), "view")
        except NoSuchTableError as error:  # of a server that says 404 alone
            raise NoSuchViewError(str(error)) from error
        return TablePointer(identifier, self.kept(told), {}, str(told["metadata"].get("location", "")))

    def kept(self, told: Mapping[str, Any]) -> str:
        """Keeps the metadata of an answer; returns its location."""
        location = str(told["metadata-location"])
        self.documents.tell(location, json.dumps(told["metadata"]).encode("utf-8"))
        return location

    def shows(self, location: str, new: ViewMetadataVersion) -> bool:
        """Whether the metadata that the server told for a location is that of `new`. See the port."""
        content = self.documents.get(location)
        if location == new.location or content is None:
            return location == new.location
        found = view_metadata_from_json(content, location)
        return found.view_uuid == new.uuid and _essence(found) == _essence(new.metadata)

    @contextmanager
    def lease(self, identifier: Identifier) -> Iterator[RestViewLease]:
        """What one commit to a view needs. See the port."""
        yield RestViewLease(self, identifier)

    def list(self, namespace: str) -> list[Identifier]:
        """Views of a namespace, sorted. See the port."""
        listed = self.channel.pages(f"{namespace_path(namespace)}/views", "namespace", "identifiers")
        return sorted((namespace, str(each["name"])) for each in listed)

    def names_file(self, metadata_location: str) -> bool:
        """That it may: the server deletes what nobody needs. See the port."""
        return True

    def drop(self, identifier: Identifier) -> None:
        """Drops a view. See the port."""
        self.channel.delete(_path(identifier), "view")

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a view. See the port."""
        names = [{"namespace": list(each[:-1]), "name": each[-1]} for each in (source, target)]
        self.channel.post("views/rename", {"source": names[0], "destination": names[1]}, "view")


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

    def acquire(self) -> None:
        """Nothing: the server locks when it commits."""

    def swap(self, base: ViewMetadataVersion | None, new: ViewMetadataVersion) -> ViewMetadataVersion:
        """Asks the server for a new view, for changes of one, or to register a file that is there. See the port."""
        channel, documents = self._views.channel, self._views.documents
        namespace, name = namespace_path(self._identifier[0]), self._identifier[-1]
        if not documents.is_prepared(new.location):
            body: dict[str, Any] = {"name": name, "metadata-location": new.location}
            told = channel.post(f"{namespace}/register-view", body, "view")
        elif base is None:
            metadata = new.metadata
            body = {
                "name": name,
                "location": metadata.location,
                "schema": schema_to_json(metadata.schema()),
                "view-version": view_version_to_json(metadata.current_version()),
                "properties": dict(metadata.properties),
            }
            told = channel.post(f"{namespace}/views", body, "view")
        else:
            body = {
                "requirements": [{"type": "assert-view-uuid", "uuid": base.uuid}],
                "updates": view_updates(base.metadata, new.metadata),
            }
            told = channel.post(_path(self._identifier), body, "commit")
        location = self._views.kept(told)
        content = documents.get(location)
        assert content is not None
        return ViewMetadataVersion(location, view_metadata_from_json(content, location))


def _path(identifier: Identifier) -> str:
    return table_path(identifier, "views")


def _essence(metadata: ViewMetadata) -> tuple[object, ...]:
    version = metadata.current_version()
    return (metadata.schema().fields, version.representations, dict(metadata.properties), metadata.location)
