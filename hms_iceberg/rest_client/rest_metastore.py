"""A REST catalog as the metastore of a catalog: its tables, and its views."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hms_iceberg.errors import IcebergError, NoSuchNamespaceError, NoSuchTableError, UnsupportedError
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer, TableSwitch, ViewMetadataVersion
from hms_iceberg.rest_client.channel import RestChannel, namespace_path
from hms_iceberg.rest_client.documents import Documents, RestNames
from hms_iceberg.spec.changes.differences import table_requirements, table_updates, view_updates
from hms_iceberg.spec.metadata.metadata_json import metadata_from_dict, metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata, view_metadata_from_json, view_version_to_json
from hms_iceberg.spec.schema_json import schema_to_json

logger = logging.getLogger(__name__)

_MOST_CONFIGS = 1000
_TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"


class RestMetastore:
    """Implements `CatalogMetastore` on a REST catalog. Safe for threads."""

    def __init__(self, channel: RestChannel, documents: Documents) -> None:
        self.channel = channel
        self.documents = documents
        self.views = RestViews(channel, documents)
        self.tables = RestNames(channel, documents, "table")
        self._configs: dict[Identifier, dict[str, str]] = {}

    def close(self) -> None:
        self.channel.close()

    # -------------------------------------------------------------------------------------------- commits

    def load(self, identifier: Identifier) -> TablePointer:
        """The table's current pointer; the metadata in the answer is cached."""
        response, location = self.tables.load(identifier)
        config = self._note_config(identifier, response)
        return TablePointer(identifier, location, config, str(response["metadata"].get("location", "")))

    def config(self, identifier: Identifier) -> Mapping[str, str]:
        """The latest configuration that the server sent for access to a table's files."""
        return self._configs.get(identifier, {})

    def _note_config(self, identifier: Identifier, response: Mapping[str, Any]) -> dict[str, str]:
        config = dict(response.get("config") or {})
        location = str((response.get("metadata") or {}).get("location", ""))
        given = [
            each
            for each in response.get("storage-credentials") or ()
            if location.startswith(each["prefix"].rstrip("/"))
        ]
        if given:  # the longest prefix says most
            config.update(max(given, key=lambda each: len(each["prefix"]))["config"])
        if len(self._configs) > _MOST_CONFIGS:
            self._configs.clear()
        self._configs[identifier] = config
        return config

    def shows(self, location: str, new: MetadataVersion) -> bool:
        """Whether the cached metadata of a location has the content of `new`."""
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
        yield RestLease(self, identifier)

    def check_several(self) -> None:
        if _TRANSACTIONS not in self.channel.endpoints:
            raise UnsupportedError(
                f"The REST catalog at {self.channel} does not tell that it can commit to several tables at once "
                f"({_TRANSACTIONS}). Commit to one table after the other."
            )

    @contextmanager
    def lease_of_several(self, tables: Mapping[Identifier, Mapping[str, str]]) -> Iterator[RestSeveralLease]:
        yield RestSeveralLease(self)

    def new_table(self, identifier: Identifier, definition: Mapping[str, Any]) -> TableMetadata:
        """The metadata that the server would give a new table, which is not created yet; `definition` is the
        request's body."""
        body = {"name": identifier[-1], **definition, "stage-create": True}
        response = self.channel.post(f"{namespace_path(identifier[0])}/tables", body, "table")
        self._note_config(identifier, response)
        return metadata_from_dict(response.get("metadata"))

    # ----------------------------------------------------------------------------------------- namespaces

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        self.channel.post("namespaces", {"namespace": [name], "properties": dict(properties)}, "namespace")

    def list_namespaces(self) -> list[str]:
        """Names of the namespaces of the first level, sorted."""
        return sorted(levels[0] for levels in self.channel.pages("namespaces", "namespace", "namespaces") if levels)

    def namespace_properties(self, name: str) -> dict[str, str]:
        try:
            return dict(self.channel.get(namespace_path(name), "namespace").get("properties") or {})
        except NoSuchTableError as error:  # of a server that says 404 alone
            raise NoSuchNamespaceError(str(error)) from error

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        body = {"removals": sorted(removals), "updates": dict(updates)}
        self.channel.post(f"{namespace_path(name)}/properties", body, "namespace")

    def drop_namespace(self, name: str) -> None:
        self.channel.delete(namespace_path(name), "namespace")

    def check_new_name(self, identifier: Identifier) -> None:
        """Does nothing: the server knows which names it takes."""

    # --------------------------------------------------------------------------------------------- tables

    def list_iceberg_tables(self, namespace: str) -> list[Identifier]:
        return self.tables.list(namespace)

    def table_exists(self, identifier: Identifier) -> bool:
        return self.tables.exists(identifier)

    def drop_table(self, identifier: Identifier) -> None:
        self.tables.drop(identifier)

    def purge_table(self, identifier: Identifier) -> None:
        """Makes the server drop a table and delete its files."""
        self.tables.drop(identifier, {"purgeRequested": "true"})

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        self.tables.rename(source, target)


class RestLease:
    """Implements `Lease`: the server has the lock, and replays what it can itself."""

    blocks_others = False
    refuses_late = False

    def __init__(self, metastore: RestMetastore, identifier: Identifier) -> None:
        self._metastore = metastore
        self._identifier = identifier

    def load(self) -> TablePointer:
        return self._metastore.load(self._identifier)

    def acquire(self) -> None:
        """Does nothing: the server locks when it commits."""

    def swap(self, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        """Sends the server the changes between two versions, or registers an existing file."""
        tables = self._metastore.tables
        if not tables.documents.is_prepared(new.location):
            response = tables.register(self._identifier, new.location, overwrite=base is not None)
        else:
            body = _changes(self._identifier, base, new)
            response = tables.channel.post(tables.path(self._identifier), body, "commit")
        location, content = tables.committed(response)
        return MetadataVersion(location, metadata_from_json(content, location))


class RestSeveralLease:
    """Implements `SeveralLease`: the server commits to all tables or to none."""

    blocks_others = False

    def __init__(self, metastore: RestMetastore) -> None:
        self._metastore = metastore

    def load(self, identifier: Identifier) -> TablePointer:
        return self._metastore.load(identifier)

    def acquire(self) -> None:
        """Does nothing: the server locks when it commits."""

    def swap(self, switches: Sequence[TableSwitch]) -> dict[Identifier, MetadataVersion]:
        """Sends the server the changes of all tables; the tables are loaded after that, as it does not tell them."""
        changes = [_changes(each.identifier, each.base, each.new) for each in switches]
        self._metastore.channel.post("transactions/commit", {"table-changes": changes}, "commit")
        return {each.identifier: self._version(each) for each in switches}

    def _version(self, switch: TableSwitch) -> MetadataVersion:
        try:
            location = self._metastore.load(switch.identifier).metadata_location
        except IcebergError as error:
            logger.warning("Table %s was committed, and cannot be loaded: %s", ".".join(switch.identifier), error)
            return switch.new
        content = self._metastore.documents.get(location)
        return switch.new if content is None else MetadataVersion(location, metadata_from_json(content, location))


def _changes(identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> dict[str, Any]:
    updates = table_updates(base.metadata if base else None, new.metadata)
    requirements = table_requirements(base.metadata if base else None, updates)
    name = {"namespace": list(identifier[:-1]), "name": identifier[-1]}
    return {"identifier": name, "requirements": requirements, "updates": updates}


def _essence(metadata: TableMetadata) -> tuple[object, ...]:
    return (
        metadata.schema(),
        metadata.spec().fields,
        metadata.sort_order().fields,
        metadata.properties,
        metadata.refs,
        metadata.location,
    )


# ----------------------------------------------------------------------------------------------- views


class RestViews:
    """Implements `ViewMetastore` on a REST catalog."""

    def __init__(self, channel: RestChannel, documents: Documents) -> None:
        self.names = RestNames(channel, documents, "view")
        self._documents = documents

    def load(self, identifier: Identifier) -> TablePointer:
        response, location = self.names.load(identifier)
        return TablePointer(identifier, location, {}, str(response["metadata"].get("location", "")))

    def shows(self, location: str, new: ViewMetadataVersion) -> bool:
        """Whether the cached metadata of a location has the content of `new`."""
        content = self._documents.get(location)
        if location == new.location or content is None:
            return location == new.location
        found = view_metadata_from_json(content, location)
        return found.view_uuid == new.uuid and _view_essence(found) == _view_essence(new.metadata)

    @contextmanager
    def lease(self, identifier: Identifier) -> Iterator[RestViewLease]:
        yield RestViewLease(self, identifier)

    def list(self, namespace: str) -> list[Identifier]:
        return self.names.list(namespace)

    def names_file(self, metadata_location: str) -> bool:
        """True: this client cannot know, and the server deletes files that are not needed."""
        return True

    def drop(self, identifier: Identifier) -> None:
        self.names.drop(identifier)

    def rename(self, source: Identifier, target: Identifier) -> None:
        self.names.rename(source, target)


class RestViewLease:
    blocks_others = False
    refuses_late = False

    def __init__(self, views: RestViews, identifier: Identifier) -> None:
        self._views = views
        self._identifier = identifier

    def load(self) -> TablePointer:
        return self._views.load(self._identifier)

    def acquire(self) -> None:
        """Does nothing: the server locks when it commits."""

    def swap(self, base: ViewMetadataVersion | None, new: ViewMetadataVersion) -> ViewMetadataVersion:
        """Sends the server a new view or the changes of one, or registers an existing file."""
        names = self._views.names
        if not names.documents.is_prepared(new.location):
            response = names.register(self._identifier, new.location)
        elif base is None:
            metadata = new.metadata
            body: dict[str, Any] = {
                "name": self._identifier[-1],
                "location": metadata.location,
                "schema": schema_to_json(metadata.schema()),
                "view-version": view_version_to_json(metadata.current_version()),
                "properties": dict(metadata.properties),
            }
            response = names.channel.post(f"{namespace_path(self._identifier[0])}/views", body, "view")
        else:
            body = {
                "requirements": [{"type": "assert-view-uuid", "uuid": base.uuid}],
                "updates": view_updates(base.metadata, new.metadata),
            }
            response = names.channel.post(names.path(self._identifier), body, "commit")
        location, content = names.committed(response)
        return ViewMetadataVersion(location, view_metadata_from_json(content, location))


def _view_essence(metadata: ViewMetadata) -> tuple[object, ...]:
    version = metadata.current_version()
    return (metadata.schema().fields, version.representations, dict(metadata.properties), metadata.location)
