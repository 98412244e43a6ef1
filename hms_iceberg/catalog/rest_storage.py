"""Files of the tables of a REST catalog: metadata files are the server's, all others are read and written here."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.rest_client.documents import Documents

_SUFFIX = ".metadata.json"


class RestStorage(ArrowStorage):
    """A storage in which metadata files are those that the server told.

    What a commit writes as a metadata file is kept here until the commit has ended: the server writes its own.

    Args:
        properties: as of `ArrowStorage`.
        documents: the metadata that is known.
    """

    def __init__(self, properties: Mapping[str, str] | None = None, documents: Documents | None = None) -> None:
        super().__init__(properties)
        self._documents = documents or Documents()

    def read(self, location: str) -> bytes:
        """The whole object. See the port."""
        content = self._documents.get(location) if location.endswith(_SUFFIX) else None
        return super().read(location) if content is None else content

    def create(self, location: str, data: bytes) -> None:
        """Writes a new object. See the port."""
        if location.endswith(_SUFFIX):
            self._documents.prepare(location, data)
        else:
            super().create(location, data)

    def exists(self, location: str) -> bool:
        """Whether an object is at the location. See the port."""
        is_known = location.endswith(_SUFFIX) and self._documents.get(location) is not None
        return is_known or super().exists(location)

    def delete(self, location: str) -> None:
        """Removes the object. See the port."""
        if not (location.endswith(_SUFFIX) and self._documents.forget(location)):
            super().delete(location)
