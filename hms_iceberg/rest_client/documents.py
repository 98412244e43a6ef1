"""Metadata files that a server sent, and requests about its tables or views.

A REST catalog reads and writes metadata files itself, and clients need not be able to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Literal

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.errors import MetastoreError, NoSuchTableError, NoSuchViewError
from hms_iceberg.metastore import Identifier
from hms_iceberg.rest_client.channel import RestChannel, namespace_path, table_path

_MOST = 64


class Documents:
    """A cache of metadata files by location; they never change, so a cached one is always right."""

    def __init__(self) -> None:
        self._received: BoundedCache[bytes] = BoundedCache(_MOST)
        self._prepared: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def keep(self, location: str, content: bytes) -> None:
        self._received.put(location, content)

    def prepare(self, location: str, content: bytes) -> None:
        """Keeps a metadata file that a commit has prepared, until `forget`."""
        with self._lock:
            self._prepared[location] = content

    def is_prepared(self, location: str) -> bool:
        """Whether a commit has prepared the file, which then exists nowhere else."""
        with self._lock:
            return location in self._prepared

    def forget(self, location: str) -> bool:
        """Removes a metadata file that a commit has prepared; returns whether there was one."""
        with self._lock:
            return self._prepared.pop(location, None) is not None

    def get(self, location: str) -> bytes | None:
        found = self._received.get(location)
        with self._lock:
            return self._prepared.get(location) if found is None else found


class RestNames:
    """Requests about the tables, or the views, of a REST catalog."""

    def __init__(self, channel: RestChannel, documents: Documents, kind: Literal["table", "view"]) -> None:
        self.channel = channel
        self.documents = documents
        self._kind = kind

    def path(self, identifier: Identifier) -> str:
        return table_path(identifier, f"{self._kind}s")

    def load(self, identifier: Identifier) -> tuple[dict[str, Any], str]:
        """The server's answer for a name, and the location of its metadata, which is cached."""
        try:
            response = self.channel.get(self.path(identifier), self._kind)
        except NoSuchTableError as error:  # also of a server that says 404 alone
            if self._kind == "table":
                raise
            raise NoSuchViewError(str(error)) from error
        return response, self.kept(response)

    def kept(self, response: Mapping[str, Any]) -> str:
        """Keeps the metadata of an answer; returns its location."""
        location, metadata = response.get("metadata-location"), response.get("metadata")
        if not isinstance(location, str) or not isinstance(metadata, dict):
            raise MetastoreError(f"The REST catalog at {self.channel} told of a {self._kind} without its metadata.")
        self.documents.keep(location, json.dumps(metadata).encode("utf-8"))
        return location

    def committed(self, response: Mapping[str, Any]) -> tuple[str, bytes]:
        """Location and content of the metadata in the answer to a commit."""
        location = self.kept(response)
        content = self.documents.get(location)
        assert content is not None
        return location, content

    def list(self, namespace: str) -> list[Identifier]:
        listed = self.channel.pages(f"{namespace_path(namespace)}/{self._kind}s", "namespace", "identifiers")
        return sorted((namespace, str(each["name"])) for each in listed)

    def exists(self, identifier: Identifier) -> bool:
        return self.channel.exists(self.path(identifier), self._kind)

    def register(self, identifier: Identifier, location: str, **more: Any) -> dict[str, Any]:
        """Registers an existing metadata file under a name."""
        endpoint = "register" if self._kind == "table" else "register-view"
        body = {"name": identifier[-1], "metadata-location": location, **more}
        return self.channel.post(f"{namespace_path(identifier[0])}/{endpoint}", body, self._kind)

    def drop(self, identifier: Identifier, query: Mapping[str, str] | None = None) -> None:
        self.channel.delete(self.path(identifier), self._kind, query)

    def rename(self, source: Identifier, target: Identifier) -> None:
        names = [{"namespace": list(each[:-1]), "name": each[-1]} for each in (source, target)]
        self.channel.post(f"{self._kind}s/rename", {"source": names[0], "destination": names[1]}, self._kind)
