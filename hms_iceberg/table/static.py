"""A table read from a metadata file, without a metastore."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.metastore import Identifier, metadata_file_location
from hms_iceberg.scan.manifests.cache import bound_shared_cache, planning_ready
from hms_iceberg.storage import Storage
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.transaction.workspace import read_version


class StaticTable(ReadableTable):
    """One version of a table, for reading only."""

    @classmethod
    def from_metadata(
        cls, metadata_location: str, properties: Mapping[str, str] | None = None, storage: Storage | None = None
    ) -> StaticTable:
        """Reads the table that a metadata file describes.

        Args:
            metadata_location: the metadata JSON; or the table's or its metadata folder with a `version-hint.text`.
            properties: storage properties such as `s3.endpoint`, and `io.manifest.cache.max-total-bytes`.
            storage: a storage to use instead.

        Returns:
            the table, which can be read, and neither changed nor refreshed.

        Raises:
            MissingFileError: no such file.
            CorruptMetadataError: it does not hold table metadata.
            InvalidInputError: the location is empty.
        """
        storage = storage or ArrowStorage(dict(properties or {}))
        bound_shared_cache(properties or {})
        with planning_ready():
            location = _metadata_file(metadata_location, storage)
            return cls(("static-table", location), read_version(location, storage), storage)

    @property
    def identifier(self) -> Identifier:
        """`("static-table", <metadata location>)`."""
        return self._identifier

    def refresh(self) -> StaticTable:
        """Not possible: the table is one metadata file.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"A static table cannot be refreshed: it is the metadata file {self.metadata_location}. Load the table "
            "from its catalog, or read another metadata file."
        )


def _metadata_file(location: str, storage: Storage) -> str:
    metadata_file_location(location)
    if location.endswith((".json", ".json.gz")):
        return location
    folder = location.rstrip("/")
    if not folder.endswith("/metadata"):
        folder += "/metadata"
    hint = f"{folder}/version-hint.text"
    if not storage.exists(hint):
        return location
    version = storage.read(hint).decode("utf-8", "replace").strip()
    if version.endswith(".metadata.json"):
        return f"{folder}/{version}"
    return f"{folder}/v{version}.metadata.json" if version.isdecimal() else f"{folder}/{version}.metadata.json"
