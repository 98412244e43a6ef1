"""A REST catalog as the metastore of a catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hms_iceberg.errors import (
    NoSuchNamespaceError,
    NoSuchTableError,
)
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer
from hms_iceberg.rest_client.channel import RestChannel, namespace_path
from hms_iceberg.rest_client.documents import Documents, RestNames
from hms_iceberg.rest_client.rest_views import RestViews
from hms_iceberg.spec.changes.differences import table_requirements, table_updates
from hms_iceberg.spec.metadata.metadata_json import metadata_from_dict, metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata

_MOST_CONFIGS = 1000


class RestMetastore:
    """Implements `CatalogMetastore` on a REST catalog. Safe for threads.

    Args:
        channel: the catalog.
        documents: where metadata is kept that the server tells.
    """

    def __init__(self, channel: RestChannel, documents: Documents) -> None:
        self.channel = channel
        self.documents = documents
        self.views = RestViews(channel, documents)
        self.tables = RestNames(channel, documents, "table")
        self._configs: dict[Identifier, dict[str, str]] = {}

    def close(self) -> None:
        """Closes the connections."""
        self.channel.close()

    # -------------------------------------------------------------------------------------------- commits

    def load(self, identifier: Identifier) -> TablePointer:
        """The table's current pointer; the metadata in the answer is cached. See the port."""
        told, location = self.tables.load(identifier)
        config = self._note_config(identifier, told)
        return TablePointer(identifier, location, config, str(told["metadata"].get("location", "")))

    def config(self, identifier: Identifier) -> Mapping[str, str]:
        """The latest configuration that the server sent for access to a table's files."""
        return self._configs.get(identifier, {})

    def _note_config(self, identifier: Identifier, told: Mapping[str, Any]) -> dict[str, str]:
        config = dict(told.get("config") or {})
        location = str((told.get("metadata") or {}).get("location", ""))
        given = [
            each for each in told.get("storage-credentials") or () if location.startswith(each["prefix"].rstrip("/"))
        ]
        if given:  # the longest prefix says most
            config.update(max(given, key=lambda each: len(each["prefix"]))["config"])
        if len(self._configs) > _MOST_CONFIGS:
            self._configs.clear()
        self._configs[identifier] = config
        return config

    def shows(self, location: str, new: MetadataVersion) -> bool:
        """Whether the cached metadata of a location has the content of `new`. See the port."""
        content = self.documents.get(location)
        if location == new.location or content is None:
            return location == new.location
        found = metadata_from_json(content, location)
        drawn = new.metadata.snapshots[-1:]
        return (
            found.table_uuid == new.uuid
            and _essence(found) == _essence(new.metadata)
            and all(snapshot.snapshot_id in found.snapshots_by_id for snapshot in drawn)
        )

    @contextmanager
    def lease(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[RestLease]:
        """Opens a lease for one commit; locking is up to the server. See the port."""
        yield RestLease(self, identifier)

    def new_table(self, identifier: Identifier, definition: Mapping[str, Any]) -> TableMetadata:
        """The metadata that the server would give a new table, which is not created yet.

        Args:
            identifier: the name, as (namespace, name).
            definition: the body of the request that creates it.
        """
        body = {"name": identifier[-1], **definition, "stage-create": True}
        told = self.channel.post(f"{namespace_path(identifier[0])}/tables", body, "table")
        self._note_config(identifier, told)
        return metadata_from_dict(told.get("metadata"))

    # ----------------------------------------------------------------------------------------- namespaces

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        """Creates a namespace. See the port."""
        self.channel.post("namespaces", {"namespace": [name], "properties": dict(properties)}, "namespace")

    def list_namespaces(self) -> list[str]:
        """Names of all namespaces of the first level, sorted."""
        return sorted(levels[0] for levels in self.channel.pages("namespaces", "namespace", "namespaces") if levels)

    def namespace_properties(self, name: str) -> dict[str, str]:
        """A namespace's properties. See the port."""
        try:
            return dict(self.channel.get(namespace_path(name), "namespace").get("properties") or {})
        except NoSuchTableError as error:  # of a server that says 404 alone
            raise NoSuchNamespaceError(str(error)) from error

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        """Sets `updates` and removes `removals`. See the port."""
        body = {"removals": sorted(removals), "updates": dict(updates)}
        self.channel.post(f"{namespace_path(name)}/properties", body, "namespace")

    def drop_namespace(self, name: str) -> None:
        """Drops an empty namespace. See the port."""
        self.channel.delete(namespace_path(name), "namespace")

    def check_new_name(self, identifier: Identifier) -> None:
        """Nothing: the server knows which names it takes."""

    # --------------------------------------------------------------------------------------------- tables

    def list_iceberg_tables(self, namespace: str) -> list[Identifier]:
        """Tables of a namespace, sorted. See the port."""
        return self.tables.list(namespace)

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether a table of that name exists."""
        return self.tables.exists(identifier)

    def drop_table(self, identifier: Identifier) -> None:
        """Drops a table and keeps its files. See the port."""
        self.tables.drop(identifier)

    def purge_table(self, identifier: Identifier) -> None:
        """Makes the server drop a table and delete its files."""
        self.tables.drop(identifier, {"purgeRequested": "true"})

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Renames a table. See the port."""
        self.tables.rename(source, target)


class RestLease:
    """Implements `Lease`: the server has the lock, and replays what it can itself."""

    blocks_others = False
    refuses_late = False

    def __init__(self, metastore: RestMetastore, identifier: Identifier) -> None:
        self._metastore = metastore
        self._identifier = identifier

    def load(self) -> TablePointer:
        """The current pointer. See the port."""
        return self._metastore.load(self._identifier)

    def begin(self) -> None:
        """Nothing: there is nothing to be asked for ahead."""

    def acquire(self) -> None:
        """Nothing: the server locks when it commits."""

    def swap(self, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        """Asks the server for the changes between two versions, or registers a file that is there. See the port."""
        tables = self._metastore.tables
        if not tables.documents.is_prepared(new.location):
            told = tables.register(self._identifier, new.location, overwrite=base is not None)
        else:
            updates = table_updates(base.metadata if base else None, new.metadata)
            requirements = table_requirements(base.metadata if base else None, updates)
            name = {"namespace": list(self._identifier[:-1]), "name": self._identifier[-1]}
            body = {"identifier": name, "requirements": requirements, "updates": updates}
            told = tables.channel.post(tables.path(self._identifier), body, "commit")
        location, content = tables.committed(told)
        return MetadataVersion(location, metadata_from_json(content, location))


def _essence(metadata: TableMetadata) -> tuple[object, ...]:
    return (
        metadata.schema(),
        metadata.spec().fields,
        metadata.sort_order().fields,
        metadata.properties,
        metadata.refs,
        metadata.location,
    )
