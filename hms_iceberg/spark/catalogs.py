"""Named catalogs of a Spark session, kept open, and the questions about them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hms_iceberg.arrow.storage.hdfs.hadoop_settings import is_of_clusters
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import (
    ConfigurationError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedError,
)
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.metadata.metadata_json import is_never_reused
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.file_system_metastore import FileSystemMetastore

OWNER = "owner"
OWNER_OF_HIVE = "hive.metastore.database.owner"
"""Spark's name and Hive's name of who owns a namespace."""

# Settings of the same names that Apache Iceberg (Java) has for Spark, and that say nothing here.
_OF_SPARK = ("default-namespace", "cache-enabled", "catalog-impl", "io-impl")
_AFTER_LOCATION = re.compile(r"#[^#@/]+@\d+$")


class OpenCatalogs:
    """The catalogs that Spark's sessions have opened, by number."""

    def __init__(self) -> None:
        self._opened: list[Catalog] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._lock = threading.Lock()

    def open(self, name: str, properties: Mapping[str, str]) -> int:
        """Opens a catalog, or finds it among those that are open: sessions come and go, connections stay. Returns its
        number, for further questions: properties hold secrets and cross once."""
        key = tuple(sorted({**properties, "": name}.items()))
        with self._lock:
            if key not in self._numbers:
                self._opened.append(load_catalog(name, **properties))
                self._numbers[key] = len(self._opened) - 1
            return self._numbers[key]

    def of(self, question: Mapping[str, Any]) -> Catalog:
        """The open catalog that a question names by its number."""
        return self.numbered(question["catalog"])

    def numbered(self, number: int) -> Catalog:
        """The open catalog of a number."""
        return self._opened[number]

    def storage(self, question: Mapping[str, Any], default: Storage) -> Storage:
        """The storage that a question's table is read with; the default if the question names no catalog."""
        return default if question.get("catalog") is None else self.of(question).storage

    def table(self, question: Mapping[str, Any], storage: Storage) -> Table:
        """The table that a question is to change, at its newest version: by `catalog`, `namespace` and `table`, or by
        `path`."""
        if "path" in question:
            return FileSystemTables(storage=storage).load(question["path"])
        return self.of(question).load_table((question["namespace"], question["table"]))

    def table_at(
        self, question: Mapping[str, Any], version: MetadataVersion, seen_at: float | None, storage: Storage
    ) -> Table:
        """The table that a question is to change, at the version that its query has read, without reading anything;
        `seen_at` is when that was the newest, if it is known (see `Catalog.table_at`)."""
        if "path" in question:
            return FileSystemTables(storage=storage).table_at(question["path"], version, seen_at)
        return self.of(question).table_at((question["namespace"], question["table"]), version, seen_at)


def open_catalog(catalogs: OpenCatalogs, asked: OpenCatalog, properties: Mapping[str, str]) -> dict[str, Any]:
    """Opens a named catalog; of the session extension's properties, Hadoop's clusters are known to every catalog."""
    name = asked.name
    own = {key: value for key, value in asked.properties.items() if key not in _OF_SPARK}
    clusters = {key: value for key, value in properties.items() if is_of_clusters(key)}
    if "uri" not in own and "warehouse" not in own:
        raise ConfigurationError(
            f"The catalog {name} has no metastore: set spark.sql.catalog.{name}.uri to thrift://host:9083, or "
            f"spark.sql.catalog.{name}.type to hadoop and spark.sql.catalog.{name}.warehouse to a folder."
        )
    return {"catalog": catalogs.open(name, {**clusters, **own})}


def open_session_catalog(
    catalogs: OpenCatalogs, asked: OpenSessionCatalog, properties: Mapping[str, str]
) -> dict[str, Any]:
    """Opens the metastore of a session's own catalog, for commits: reads go through Spark's client of it. The
    properties of the session's extension win."""
    hive = asked.hive
    uri = hive.get("hive.metastore.uris")
    if not uri:
        raise ConfigurationError(
            "Nothing was changed: this session has a metastore inside of its own process, and Iceberg tables are "
            "committed through a Hive Metastore with an address. Start one (hms-iceberg metastore start, or your "
            "own) and set spark.hadoop.hive.metastore.uris=thrift://host:9083 before the session is built."
        )
    options = {key: value for key, value in asked.options.items() if key not in (*_OF_SPARK, "type", "uri")}
    merged = {**hive, "warehouse": asked.warehouse, **options, **properties, "uri": uri, "type": "hive"}
    return {"catalog": catalogs.open(asked.name, merged)}


def version_name(version: MetadataVersion) -> str:
    """The name by which the bridge asks for a version of a table, and keeps the answers: its metadata file's location.
    If a file of that name may be another one tomorrow, what tells it from that one follows after a `#`."""
    if is_never_reused(version.location):
        return version.location
    return f"{version.location}#{version.uuid}@{version.metadata.last_updated_ms}"


def location_of(name: str) -> str:
    """The metadata file of a version's name; see `version_name`."""
    return _AFTER_LOCATION.sub("", name)


def find_table(
    catalogs: OpenCatalogs, asked: FindTable, storage: Storage, name_of: Callable[[TablePointer, Storage], str]
) -> dict[str, Any]:
    """The name of a table's newest version as `metadata_location`, by `name_of` (`OpenTables.name_of`), and whether it
    is of a `view`; null if a catalog has neither."""
    path = asked.path
    if path is None:
        assert asked.catalog is not None
        catalog, identifier = catalogs.numbered(asked.catalog), (asked.namespace, asked.table)
        try:
            pointer = catalog.metastore.load(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return _view(catalog, identifier)
        return {"metadata_location": name_of(pointer, catalog.storage)}
    if path.endswith((".metadata.json", ".metadata.json.gz")):
        pointer = TablePointer((path,), path)
    else:
        pointer = FileSystemMetastore(storage).load((path.rstrip("/"),))
    return {"metadata_location": name_of(pointer, storage)}


def _view(catalog: Catalog, identifier: tuple[str, str]) -> dict[str, Any]:
    try:
        return {"metadata_location": catalog.load_view(identifier).metadata_location, "view": True}
    except (NoSuchViewError, NoSuchNamespaceError, UnsupportedError):  # catalogs of folders have no views
        return {"metadata_location": None}


def list_namespaces(catalogs: OpenCatalogs, asked: InCatalog) -> dict[str, Any]:
    """Lists the namespaces of a `catalog`, their names with dots."""
    return {"namespaces": [".".join(each) for each in catalogs.numbered(asked.catalog).list_namespaces()]}


def namespace_properties(catalogs: OpenCatalogs, asked: InCatalog) -> dict[str, Any]:
    """The properties of a `namespace`, with the owner under Spark's name; null if there is no such namespace."""
    try:
        properties = catalogs.numbered(asked.catalog).load_namespace_properties(asked.namespace or ())
    except NoSuchNamespaceError:
        return {"properties": None}
    owner = properties.get(OWNER_OF_HIVE)
    return {"properties": properties if owner is None else {**properties, OWNER: owner}}


def list_tables(catalogs: OpenCatalogs, asked: InCatalog) -> dict[str, Any]:
    """Lists the Iceberg tables in a `namespace`, by their own names; null if there is no such namespace."""
    try:
        tables = catalogs.numbered(asked.catalog).list_tables(asked.namespace or ())
    except NoSuchNamespaceError:
        return {"tables": None}
    return {"tables": [each[-1] for each in tables]}


def list_views(catalogs: OpenCatalogs, asked: InCatalog) -> dict[str, Any]:
    """Lists the Iceberg views in a `namespace`, by their own names; null if there is no such namespace."""
    try:
        views = catalogs.numbered(asked.catalog).list_views(asked.namespace or ())
    except NoSuchNamespaceError:
        return {"views": None}
    except UnsupportedError:  # catalogs of folders have no views
        return {"views": []}
    return {"views": [each[-1] for each in views]}


class OpenCatalog(msgspec.Struct, frozen=True):
    """A named catalog is to be opened (`NamedCatalog`)."""

    name: str
    properties: dict[str, str]  # those of `load_catalog`


class OpenSessionCatalog(msgspec.Struct, frozen=True):
    """The metastore of a session's own catalog is to be opened (`SessionMetastore`)."""

    name: str
    hive: dict[str, str]  # Hive's settings as the session has them
    warehouse: str  # the session's
    options: dict[str, str]  # of `spark.sql.catalog.spark_catalog.*`, such as `table-default.*`


class InCatalog(msgspec.Struct, frozen=True):
    """Asks for the names in a catalog, by its number, or in a namespace of it (`NamedCatalog`)."""

    catalog: int
    namespace: str | None = None


class FindTable(msgspec.Struct, frozen=True):
    """Where a table's newest metadata is (`NamedCatalog`, `TableReads`): of a path, or of a name in a catalog."""

    path: str | None = None  # a table's folder, or a metadata file
    catalog: int | None = None
    namespace: str = ""
    table: str = ""
