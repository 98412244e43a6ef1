"""The state of one extended session: its catalogs, staged tables, rewritings, and metadata read last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.encryption.encrypted_tables import check_same_key, is_encrypted
from hms_iceberg.errors import MissingFileError
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spark.catalogs import OpenCatalogs, version_name
from hms_iceberg.spark.rewriting.runs import OpenRewrites
from hms_iceberg.spark.staged_tables import Targets
from hms_iceberg.spark.transactions import OpenTransactions
from hms_iceberg.spec.metadata.metadata_json import is_never_reused
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage, is_previewing
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.transaction.workspace import read_current, read_version, storage_of

_KEPT_TABLES = 64


class OpenTables:
    """The catalogs and tables that a session has open, and its rewritings that are under way."""

    def __init__(self, properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> None:
        self.properties = dict(properties or {})
        self.catalogs = OpenCatalogs()
        self.targets = Targets(self.catalogs)
        self.rewrites = OpenRewrites()
        self.transactions = OpenTransactions(self.catalogs)
        self._storage = storage or ArrowStorage(self.properties)
        self._metadata: BoundedCache[TableMetadata] = BoundedCache(_KEPT_TABLES)

    def storage(self, question: Mapping[str, Any]) -> Storage:
        """The storage that a question's table is on."""
        storage = self._files(question)
        if is_previewing(storage) and "metadata_location" in question:
            return storage_of(self._metadata_of(question, storage), storage)
        return storage

    def _files(self, question: Mapping[str, Any]) -> Storage:
        if "rewrite" in question:
            return self.rewrites.of(question).storage
        return self.catalogs.storage(question, self._storage)

    def version(self, question: Mapping[str, Any]) -> MetadataVersion:
        """The version of a table that a question is about."""
        return MetadataVersion(question["metadata_location"], self._metadata_of(question, self._files(question)))

    def _metadata_of(self, question: Mapping[str, Any], storage: Storage) -> TableMetadata:
        name = question["version_name"]
        known = self._metadata.get(name) or self.transactions.metadata(name)
        if known is not None:
            return known
        version = read_version(question["metadata_location"], storage)
        if name not in (version.location, version_name(version)):
            raise MissingFileError(
                f"The metadata file {version.location} is not the one that the query began with: the table was dropped "
                "meanwhile, and another one was created in its place. Run the query again."
            )
        return self._keep(version)

    @contextmanager
    def change(
        self, question: Mapping[str, Any], table: Callable[[], Table | None] = lambda: None
    ) -> Iterator[TableTransaction]:
        """A transaction for what a question changes, committed at the end of the block, unless its session has one
        open; see `Targets.transaction`."""
        transaction = self.transactions.of_change(question)
        if transaction is not None:
            with transaction.change(question) as changes:
                yield changes
            return
        with self.targets.transaction(question, self.storage(question), table()) as own:
            yield own

    def name_of(self, pointer: TablePointer, storage: Storage) -> str:
        """The name of the version that a metastore points at; see `version_name`. The file is looked at if it is of an
        encrypted table or may have been another one yesterday."""
        location = pointer.metadata_location
        if is_never_reused(location):
            known = self._metadata.get(location)
            if known is not None:
                check_same_key(pointer.properties, known, location)
                return location
            if not is_encrypted(pointer.properties):
                return location
        version = read_current(pointer, storage)
        self._keep(version)
        return version_name(version)

    def _keep(self, version: MetadataVersion) -> TableMetadata:
        return self._metadata.put(version_name(version), version.metadata)
