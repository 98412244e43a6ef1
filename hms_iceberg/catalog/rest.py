"""The catalog of a server that speaks the Iceberg REST protocol, and the storage of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.encryption.key_services import KeyService
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer, table_identifier
from hms_iceberg.reports import listen
from hms_iceberg.rest_client.channel import RestChannel
from hms_iceberg.rest_client.documents import Documents
from hms_iceberg.rest_client.reports import RestReporter
from hms_iceberg.rest_client.rest_metastore import RestMetastore
from hms_iceberg.spec.json_model import text_properties
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import spec_to_json
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.sort_orders import sort_order_to_json
from hms_iceberg.transaction.workspace import read_version

if TYPE_CHECKING:
    from hms_iceberg.table import Table
    from hms_iceberg.table.changes.table_definition import TableDefinition
    from hms_iceberg.table.table import TableTransaction
    from hms_iceberg.transaction.retry import Freshness
    from hms_iceberg.transaction.transaction import Origin

_SUFFIX = ".metadata.json"


class RestStorage(ArrowStorage):
    """A storage whose metadata files are the server's answers, and a commit's own file until it has ended. `own` has
    the user's properties only: a server must not choose the key service."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        documents: Documents | None = None,
        own: ArrowStorage | None = None,
    ) -> None:
        super().__init__(properties)
        self._documents = documents or Documents()
        self._own = own

    @cached_property
    def key_service(self) -> KeyService | None:
        return None if self._own is None else self._own.key_service

    def read(self, location: str) -> bytes:
        content = self._documents.get(location) if location.endswith(_SUFFIX) else None
        return super().read(location) if content is None else content

    def create(self, location: str, data: bytes) -> None:
        if location.endswith(_SUFFIX):
            self._documents.prepare(location, data)
        else:
            super().create(location, data)

    def exists(self, location: str) -> bool:
        is_known = location.endswith(_SUFFIX) and self._documents.get(location) is not None
        return is_known or super().exists(location)

    def delete(self, location: str) -> None:
        if not (location.endswith(_SUFFIX) and self._documents.forget(location)):
            super().delete(location)


class RestCatalog(Catalog):
    """Namespaces, tables and views of a REST catalog; `load_catalog` gives one that is configured. Its properties are
    those of `load_catalog` and of `RestChannel`."""

    def __init__(self, name: str, **properties: Any) -> None:
        self._own_properties = text_properties(properties)
        channel, documents = RestChannel(self._own_properties), Documents()
        merged = dict(channel.configured())
        self._documents = documents
        self._own = ArrowStorage(self._own_properties)
        metastore = RestMetastore(channel, documents)
        super().__init__(name, metastore, RestStorage(merged, documents, self._own), merged)
        self._channel_metastore = metastore
        self._reporter = RestReporter(channel) if RestReporter.is_wanted(channel) else None
        self._listening = None if self._reporter is None else listen(self._reporter)

    def _given(self) -> Mapping[str, str]:
        return self._own_properties

    def close(self) -> None:
        if self._listening is not None and self._reporter is not None:
            self._listening.close()
            self._reporter.close()
        super().close()

    def load_table(self, identifier: str | Identifier) -> Table:
        from hms_iceberg.scan.manifests.cache import planning_ready

        with planning_ready():
            pointer = self.metastore.load(table_identifier(identifier))
            return self._table(pointer.identifier, self._read_current(pointer))

    def _read_current(self, pointer: TablePointer) -> MetadataVersion:
        return read_version(pointer.metadata_location, self.storage)

    def _table(self, identifier: Identifier, version: MetadataVersion, freshness: Freshness | None = None) -> Table:
        from hms_iceberg.catalog.rest_table import RestTable

        storage = self._storage_for(identifier)
        if self._reporter is not None:
            self._reporter.note(str(version.metadata.table_uuid), identifier)
        return RestTable(identifier, version, self.metastore, storage, self.name, self, freshness)

    def _defining(self, name: Identifier, origin: Origin) -> TableTransaction:
        from hms_iceberg.table.table import TableTransaction
        from hms_iceberg.transaction.transaction import Transaction

        transaction = Transaction(name, origin, self.metastore, self._storage_for(name))
        return TableTransaction(transaction, lambda version: self._table(name, version))

    def _storage_for(self, identifier: Identifier) -> RestStorage:
        """The storage of a table's files, with the access that the server granted."""
        config = self._channel_metastore.config(identifier)
        if not config:
            assert isinstance(self.storage, RestStorage)
            return self.storage
        return RestStorage({**self.properties, **config}, self._documents, self._own)

    def _new_metadata(self, identifier: Identifier, definition: TableDefinition) -> TableMetadata:
        """The metadata that the server makes for a new table; the server decides where the table goes."""
        resolved = definition.resolved(self.properties)
        assert isinstance(resolved.schema, Schema)
        body: dict[str, Any] = {
            "schema": schema_to_json(resolved.schema),
            "partition-spec": spec_to_json(resolved.partition_spec),
            "write-order": sort_order_to_json(resolved.sort_order),
            "properties": dict(resolved.properties or {}),
        }
        if resolved.location:
            body["location"] = resolved.location
        return self._channel_metastore.new_table(identifier, body)
