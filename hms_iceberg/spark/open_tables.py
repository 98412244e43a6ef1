"""What the questions of one extended session share: its catalogs, staged tables, rewritings, and metadata read last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.encryption.table_rules import check_same_key
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spark.rewriting.runs import OpenRewrites
from hms_iceberg.spark.targets import Targets
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage, is_previewing
from hms_iceberg.transaction.workspace import read_current, read_version, storage_of

_KEPT_TABLES = 64


class OpenTables:
    """The catalogs and tables that a session has open.

    Args:
        properties: storage properties.
        storage: a storage to use instead.

    Attributes:
        properties: the storage properties.
        catalogs: the catalogs.
        targets: what questions change.
        rewrites: the rewritings that are under way.
    """

    def __init__(self, properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> None:
        self.properties = dict(properties or {})
        self.catalogs = OpenCatalogs()
        self.targets = Targets(self.catalogs)
        self.rewrites = OpenRewrites()
        self._storage = storage or ArrowStorage(self.properties)
        self._metadata: OrderedDict[str, TableMetadata] = OrderedDict()
        self._lock = threading.Lock()

    def storage(self, question: Mapping[str, Any]) -> Storage:
        """The storage that a question's table is on."""
        storage = self._files(question)
        if is_previewing(storage) and "metadata_location" in question:
            return storage_of(self.metadata(question["metadata_location"], storage), storage)
        return storage

    def _files(self, question: Mapping[str, Any]) -> Storage:
        if "rewrite" in question:
            return self.rewrites.of(question).storage
        return self.catalogs.storage(question, self._storage)

    def version(self, question: Mapping[str, Any]) -> MetadataVersion:
        """The version of a table that a question is about."""
        location = question["metadata_location"]
        return MetadataVersion(location, self.metadata(location, self._files(question)))

    def check(self, pointer: TablePointer, storage: Storage) -> None:
        """Makes sure that the metadata file of an encrypted table is the one that was committed.

        Args:
            pointer: what the metastore says of the table.
            storage: where it is.

        Raises:
            MissingFileError, CorruptMetadataError: it is gone, damaged or another one.
        """
        with self._lock:
            known = self._metadata.get(pointer.metadata_location)
        if known is None:
            self._keep(pointer.metadata_location, read_current(pointer, storage).metadata)
        else:
            check_same_key(pointer.properties, known, pointer.metadata_location)

    def metadata(self, location: str, storage: Storage) -> TableMetadata:
        """Table metadata by its location; those that were read last are kept, since metadata files never change.

        Args:
            location: the metadata file.
            storage: where it is.

        Raises:
            MissingFileError, CorruptMetadataError: it is gone or damaged.
        """
        with self._lock:
            known = self._metadata.get(location)
            if known is not None:
                self._metadata.move_to_end(location)
                return known
        return self._keep(location, read_version(location, storage).metadata)

    def _keep(self, location: str, metadata: TableMetadata) -> TableMetadata:
        with self._lock:
            self._metadata[location] = metadata
            while len(self._metadata) > _KEPT_TABLES:
                self._metadata.popitem(last=False)
        return metadata
