"""What PyIceberg's tests construct by hand and users do not: tables without a catalog, catalogs of its own kinds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memory_metastore import InMemoryMetastore

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.catalog import load_catalog as load_ours
from hms_iceberg.metastore import MetadataVersion, ViewMetadataVersion
from hms_iceberg.spec.metadata.metadata_json import compress, metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED
from hms_iceberg.storage import OutputFile
from hms_iceberg.table import Table, TableTransaction
from hms_iceberg.table.changes.update_schema import UpdateSchema
from hms_iceberg.table.changes.update_spec import UpdateSortOrder, UpdateSpec
from hms_iceberg.view import View


class _Kind(type):
    """A class of PyIceberg that is a function and a question here."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return bool(cls.matches(instance))  # type: ignore[attr-defined]


class PeerTable(metaclass=_Kind):
    """`Table(identifier, metadata, metadata_location, io, catalog)`."""

    def __new__(
        cls,
        identifier: tuple[str, ...],
        metadata: TableMetadata,
        metadata_location: str,
        io: Any,
        catalog: Catalog,
        config: Mapping[str, str] | None = None,
    ) -> Any:
        version = MetadataVersion(metadata_location, metadata)
        return Table(tuple(identifier), version, InMemoryMetastore(), io.storage, catalog.name, catalog)

    @staticmethod
    def matches(instance: Any) -> bool:
        """Whether it is a table."""
        return isinstance(instance, Table)


class _NamespacesOnDisk(InMemoryMetastore):
    """Its namespaces are folders of a warehouse."""

    def __init__(self, warehouse: str) -> None:
        super().__init__()
        self._warehouse = warehouse

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        super().create_namespace(name, {"location": f"{self._warehouse}/{name}", **properties})


class MemoryCatalog(Catalog):
    """A catalog in memory, with files in its warehouse."""

    def __init__(self, name: str, **properties: Any) -> None:
        warehouse = str(properties.get("warehouse", "mem://warehouse")).rstrip("/")
        super().__init__(name, _NamespacesOnDisk(warehouse), ArrowStorage(properties), properties)

    def list_views(self, namespace: str | tuple[str, ...]) -> list[tuple[str, ...]]:
        """None: PyIceberg's tests ask every catalog when they clean up."""
        return []


def load_catalog(name: str | None = None, **properties: Any) -> Catalog:
    """The catalogs of PyIceberg's integration tests are one Hive Metastore here, with files on disk."""
    uri = os.environ.get("PYICEBERG_TESTS_METASTORE")
    if uri is None or not str(properties.get("uri", "")).endswith((":8181", ":9083")):
        return load_ours(name, **properties)
    return load_ours("integration", type="hive", uri=uri)


def hive_catalog(name: str, **properties: Any) -> Catalog:
    """`HiveCatalog(name, uri=…)`."""
    return load_catalog(name, **properties)


class PeerView(metaclass=_Kind):
    """`View(identifier, metadata)`."""

    def __new__(cls, identifier: tuple[str, ...], metadata: ViewMetadata) -> Any:
        version = ViewMetadataVersion(f"{metadata.location}/metadata/v1.json", metadata)
        return View(tuple(identifier), version, InMemoryMetastore(), ArrowStorage({}))  # type: ignore[arg-type]

    @staticmethod
    def matches(instance: Any) -> bool:
        """Whether it is a view."""
        return isinstance(instance, View)


class ToOutputFile:
    """Writes a metadata file."""

    @staticmethod
    def table_metadata(metadata: TableMetadata, output_file: OutputFile, overwrite: bool = False) -> None:
        """Writes table metadata, compressed where the name says so."""
        data = metadata_to_json(metadata)
        with output_file.create(overwrite) as stream:
            stream.write(compress(data) if ".gz." in output_file.location else data)


def transaction(table: Table, autocommit: bool = False) -> TableTransaction:
    """`Transaction(table)`."""
    return table._transaction(autocommit)


def update_schema(transaction: TableTransaction, schema: Schema | None = None, **options: Any) -> UpdateSchema:
    """`UpdateSchema(transaction, schema=…)`: a change of a table that has this schema and nothing else."""
    if schema is None:
        return transaction.update_schema(**options)
    metadata = replace(
        transaction.metadata,
        schemas=(schema,),
        current_schema_id=schema.schema_id,
        last_column_id=schema.highest_field_id,
        partition_specs=(UNPARTITIONED,),
        default_spec_id=0,
        sort_orders=(UNSORTED,),
        default_sort_order_id=0,
        snapshots=(),
        current_snapshot_id=None,
        refs={},
        snapshot_log=(),
        statistics=(),
    )
    table = Table(("db", "t"), MetadataVersion("memory:/t", metadata), InMemoryMetastore(), ArrowStorage({}))
    options = {key: value for key, value in options.items() if key in ("allow_incompatible_changes", "case_sensitive")}
    return table.update_schema(**options)


# Previews under the name that PyIceberg's tests call them by.
for builder in (UpdateSchema, UpdateSpec, UpdateSortOrder):
    builder._apply = builder.apply  # type: ignore[attr-defined]


class Config:
    """PyIceberg's configuration, which its tests cut off from files."""

    @staticmethod
    def _from_configuration_files() -> None:
        return None


STAND_INS: dict[str, dict[str, Any]] = {
    "pyiceberg.table": {"Table": PeerTable, "Transaction": transaction},
    "pyiceberg.table.update.schema": {"UpdateSchema": update_schema},
    "pyiceberg.view": {"View": PeerView},
    "pyiceberg.serializers": {"ToOutputFile": ToOutputFile},
    "pyiceberg.typedef": {"UTF8": "utf-8", "EMPTY_DICT": {}},
    "pyiceberg.catalog": {"load_catalog": load_catalog, "_ENV_CONFIG": Config()},
    "pyiceberg.utils.config": {"Config": Config},
    "pyiceberg.catalog.hive": {"HiveCatalog": hive_catalog},
    "pyiceberg.catalog.noop": {"NoopCatalog": MemoryCatalog},
    "pyiceberg.catalog.memory": {"InMemoryCatalog": MemoryCatalog},
}
