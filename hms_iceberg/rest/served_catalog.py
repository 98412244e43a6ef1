"""The server's catalog, which all endpoints share: the catalog itself, checks of requests, and caches of immutable
things."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.errors import MissingFileError, NoSuchNamespaceError, NotAnIcebergTableError
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer, TableRows
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.files.signing import SIGNED, VENDED, FileAccess, RequestSigner, requested_delegation, s3_folders
from hms_iceberg.rest.files.vending import CredentialVendor
from hms_iceberg.rest.hive_tables import HiveTables, read_only
from hms_iceberg.rest.planning.plan_store import PlanStore
from hms_iceberg.rest.security.locations import (
    AllowedLocations,
    Location,
    Namespaces,
    check_partitions,
    check_tables,
    confined,
    folders_of,
    new_locations,
    new_view_locations,
    table_locations,
)
from hms_iceberg.rest.serving.calls import Call
from hms_iceberg.rest.serving.latest_versions import LatestVersions
from hms_iceberg.rest.settings import MEBIBYTE, PLANNING_MODE, RestSettings
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spec.metadata.metadata_json import is_never_reused
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.table_properties import FOLDER_PROPERTIES
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.needed_files.named_files import is_in_any
from hms_iceberg.table.needed_files.needed_by_others import table_rows_of
from hms_iceberg.transaction.workspace import read_current, read_version


class ServedCatalog:
    """The catalog of a server, with its settings, checks and caches."""

    def __init__(self, catalog: Catalog, settings: RestSettings, endpoints: tuple[str, ...] = ()) -> None:
        self.catalog = catalog
        self.settings = settings
        self.endpoints = endpoints  # named by the configuration
        self.locations = AllowedLocations(settings.allowed_locations)
        # Metadata as JSON, by version and by which snapshots are in it.
        self.bodies: BoundedCache[bytes] = BoundedCache(128 * MEBIBYTE, len)
        self.plans = PlanStore(settings.state_folder)
        self.plan_parts: BoundedCache[ScanPlan] = BoundedCache(32)  # whose next page will be asked for soon
        storage, secrets = settings.storage, dict(catalog.properties)
        self.vendor = CredentialVendor(storage, secrets) if storage.role_arn else None
        self.signer = RequestSigner(secrets) if storage.signs else None
        followers = settings.hive_tables
        self.hive = HiveTables(catalog, followers.lower(), settings.hive_tables_seconds) if followers else None
        self._versions: BoundedCache[MetadataVersion] = BoundedCache(1_000_000, _weight)
        self.latest_versions = LatestVersions()  # as this process saw them; they may be outdated

    def check(self, call: Call, right: Right, namespace: str, name: str | None = None) -> None:
        """Refuses a caller who lacks a right on a namespace (`name` is None), or on a table or view in it."""
        if not call.access.allows(right, namespace, name):
            what = f"namespace {namespace}" if name is None else f"{namespace}.{name}"
            raise RefusedError(
                403,
                "ForbiddenException",
                f"{call.access.caller.name} may not {right.name.lower()} {what}. The server's policy says who may.",
            )

    def check_table(
        self, call: Call, identifier: Identifier, new: TableMetadata, base: MetadataVersion | None, file: str = ""
    ) -> None:
        """Refuses a new version of a table (`base` None: a new table) with locations that are not allowed or in
        folders of others."""
        asked = new_locations(new, None if base is None else base.metadata)
        asked += [Location("metadata file", file)] if file else []
        self.check_locations(call, identifier, asked, "" if base is None else base.location, table_locations(new))

    def check_own(self, call: Call, identifier: Identifier, version: MetadataVersion) -> None:
        """Refuses access to the files of a table whose metadata file names folders of others: whoever may write to a
        table can replace its metadata file."""
        self.check_locations(call, identifier, (), version.location, table_locations(version.metadata))

    def check_plan(
        self, call: Call, identifier: Identifier, version: MetadataVersion, snapshots: Iterable[Snapshot]
    ) -> None:
        """Refuses to plan what is in folders of others: a plan tells bounds of rows, and is made with the server's
        rights."""
        if call.access.allows_everything or (self.hive is not None and self.hive.row(identifier) is not None):
            return
        self.check_own(call, identifier, version)
        storage = self.catalog.storage
        named = (Location("manifest", each.manifest_path) for one in snapshots for each in one.manifests(storage))
        self.check_locations(call, identifier, (), version.location, named)

    def confined(self, call: Call, identifier: Identifier) -> Catalog:
        """The catalog; under a policy, or with allowed locations, one that deletes no file outside the table's
        folders."""
        catalog = self.catalog
        if call.access.allows_everything and self.locations.folders is None:
            return catalog
        identifier, version = self.writable(identifier)
        self.check_own(call, identifier, version)
        own, places = self.latest_versions.own_folders(identifier, version.location), Places(catalog.storage)

        def may_go(location: str) -> bool:
            is_own = call.access.allows_everything or is_in_any(places.of(location), own)
            return is_own and self.locations.allow(location, places)

        return Catalog(catalog.name, catalog.metastore, confined(catalog.storage, may_go), dict(catalog.properties))

    def check_view(self, call: Call, identifier: Identifier, new: ViewMetadata, base: ViewMetadata | None) -> None:
        """Refuses a new version of a view with locations that are not allowed, or in folders of others."""
        self.check_locations(call, identifier, new_view_locations(new, base))

    def check_locations(
        self,
        call: Call,
        identifier: Identifier,
        asked: Iterable[Location],
        version: str = "",
        named: Iterable[Location] = (),
    ) -> None:
        """Refuses locations by their spelling, the server's settings, and under a policy those of others; `asked` are
        new, `named` only may have become others', and the folders of `version` are the table's own."""
        places, asked = Places(self.catalog.storage), list(asked)
        for location in asked:
            self.locations.check(location.text, location.what, places)
        if call.access.allows_everything:
            return
        own = self.latest_versions.own_folders(identifier, version) if version else ()
        foreign = [each for each in dict.fromkeys((*asked, *named)) if not is_in_any(places.of(each.text), own)]
        if foreign:
            rows = table_rows_of(self.catalog.metastore)
            check_tables(call.access, identifier, foreign, rows, places)
            new = [each for each in asked if each in foreign]
            if new and rows is not None:
                self._check_territory(call, identifier[0].lower(), new, rows, places)

    def _check_territory(
        self, call: Call, namespace: str, new: Sequence[Location], rows: TableRows, places: Places
    ) -> None:
        """Refuses new locations in namespaces of others, and outside the table's own namespace those over partitions
        of others."""
        namespaces = self.namespaces()
        namespaces.check(call.access, namespace, new, places, everywhere=self.locations.folders is not None)
        home = [places.of(folder) for name, folder in namespaces.folders.items() if name == namespace]
        elsewhere = [each for each in new if not is_in_any(places.of(each.text), home)]
        if elsewhere:
            check_partitions(call.access, elsewhere, rows, places)

    def check_made_table(self, call: Call, identifier: Identifier, metadata: TableMetadata) -> None:
        """Drops a new table again, without its files, if the metastore gave it a folder that is refused."""
        if not call.access.allows_everything or self.locations.folders is not None:
            self.check_made(call, self.catalog.metastore.load(identifier), metadata.location, self.catalog.drop_table)

    def check_made(
        self, call: Call, pointer: TablePointer, location: str, take_back: Callable[[Identifier], object]
    ) -> None:
        """Drops a new row again (by `take_back`) if the metastore gave it another folder than was asked for, and one
        that is refused."""
        places = Places(self.catalog.storage)
        if not pointer.location or places.of(pointer.location) == places.of(location):
            return
        try:
            self.check_locations(call, pointer.identifier, [Location("metastore's folder", pointer.location)])
        except RefusedError:
            take_back(pointer.identifier)
            raise

    def namespaces(self) -> Namespaces:
        folders = {}
        for (name,) in self.catalog.list_namespaces():
            with suppress(NoSuchNamespaceError):  # dropped meanwhile
                location = self.catalog.load_namespace_properties(name).get("location")
                folders.update({name.lower(): location} if location else {})
        return Namespaces(folders)

    def list_tables(self, namespace: str) -> list[Identifier]:
        tables = self.catalog.list_tables(namespace)
        return sorted({*tables, *self.hive.names(namespace)}) if self.hive is not None else tables

    def check_exists(self, identifier: Identifier) -> None:
        """Raises NoSuchTableError unless an Iceberg table, or a Hive table that is served as one, has the name."""
        try:
            self.catalog.metastore.load(identifier)
        except NotAnIcebergTableError:
            if self.hive is None or self.hive.row(identifier) is None:
                raise

    def files_for(
        self, call: Call, identifier: Identifier, metadata: TableMetadata, version: MetadataVersion | None
    ) -> FileAccess:
        """The access that a client gets to a table's files: the first of the ways that it asks for which the server
        offers."""
        config = dict(self.settings.table_config)
        if self.settings.server_planning:
            # Apache Iceberg 1.12 would lose the lineage of rows: it does not read the sequence numbers of a plan.
            config[PLANNING_MODE] = "server" if metadata.format_version < 3 else "client"
        for delegation in requested_delegation(call.headers):
            if delegation == VENDED and self.vendor is not None and s3_folders(metadata):
                return FileAccess(config, self.credentials(call, identifier, metadata, version))
            if delegation == SIGNED and self.signer is not None and s3_folders(metadata):
                path = f"v1/namespaces/{quote(identifier[0], safe='')}/tables/{quote(identifier[1], safe='')}/sign"
                signing = {"s3.remote-signing-enabled": "true", "s3.signer.uri": f"{call.url}/"}
                return FileAccess({**config, **signing, "s3.signer.endpoint": path})
        return FileAccess(config)

    def credentials(
        self, call: Call, identifier: Identifier, metadata: TableMetadata, version: MetadataVersion | None
    ) -> list[dict[str, Any]]:
        """Credentials of a table's folders, for what the caller may do; empty if the server vends none for them."""
        folders = s3_folders(metadata)
        hive = None if self.hive is None or not folders else self.hive.row(identifier)
        if hive is not None:  # the files are Hive's, and in its folder
            return []
        if self.vendor is None or not folders or not all(self.locations.allow(folder.location) for folder in folders):
            return []
        if version is not None:
            self.check_own(call, identifier, version)
        writes = call.access.allows(Right.WRITE, *identifier)
        config = self.vendor.credentials(folders, writes, call.access.caller.name)
        return [{"prefix": folder.location, "config": {**self.settings.table_config, **config}} for folder in folders]

    def current(self, identifier: Identifier) -> tuple[Identifier, MetadataVersion]:
        """A table's name in the metastore, and its newest version; asks the metastore every time."""
        try:
            pointer = self.catalog.metastore.load(identifier)
        except NotAnIcebergTableError:
            if self.hive is None or self.hive.row(identifier) is None:
                raise
            pointer = self.catalog.metastore.load(self.hive.follower(identifier))
            return identifier, self._current(pointer)
        return self._found(pointer)

    def writable(self, identifier: Identifier) -> tuple[Identifier, MetadataVersion]:
        """As `current`, but refuses plain Hive tables."""
        try:
            pointer = self.catalog.metastore.load(identifier)
        except NotAnIcebergTableError as error:
            if self.hive is None:
                raise
            raise read_only(identifier, error) from error
        return self._found(pointer)

    def _found(self, pointer: TablePointer) -> tuple[Identifier, MetadataVersion]:
        folder_of = getattr(self.catalog.metastore, "location_of", lambda _: "")  # where a table's name is its folder
        location = pointer.location or folder_of(pointer.identifier)
        own = _own_folders(location, pointer.properties, pointer.metadata_location, self.catalog.storage)
        self.latest_versions.note(pointer.identifier, pointer.metadata_location, own)
        return pointer.identifier, self._current(pointer)

    def _current(self, pointer: TablePointer) -> MetadataVersion:
        return self._read(pointer.metadata_location, lambda: read_current(pointer, self.catalog.storage))

    def version_at(self, location: str) -> MetadataVersion:
        """The version in a metadata file; if the file is gone, the message begins as Apache Iceberg's does."""
        return self._read(location, lambda: read_version(location, self.catalog.storage))

    def _read(self, location: str, read: Callable[[], MetadataVersion]) -> MetadataVersion:
        try:
            return self._versions.get_or_make(location, read) if is_never_reused(location) else read()
        except MissingFileError as error:
            raise _missing(location, str(error)) from error

    def check_is_there(self, location: str) -> None:
        """Refuses a metadata file that is gone, as `version_at` does."""
        if not self.catalog.storage.exists(location):
            raise _missing(location, "There is no such file.")

    def remember(self, identifier: Identifier, version: MetadataVersion) -> None:
        """Keeps a version that was just committed, which is asked for next."""
        self._versions.put(version.location, version)
        metadata = version.metadata
        own = _own_folders(metadata.location, metadata.properties, version.location, self.catalog.storage)
        self.latest_versions.note(identifier, version.location, own, next(reversed(version.previous), None))


def _own_folders(
    location: str, properties: Mapping[str, str], file: str, storage: Storage
) -> Callable[[], Iterable[Place]]:
    """A function of the folders of a table, which keeps no more of its metadata than that takes."""
    kept = {key: properties[key] for key in FOLDER_PROPERTIES if key in properties}
    return lambda: map(Places(storage).of, folders_of(location, kept, file)) if location else ()


def _missing(location: str, why: str) -> MissingFileError:
    return MissingFileError(f"Failed to open input stream for file: {location}. {why}")


def _weight(version: MetadataVersion) -> int:
    """An estimate of the memory that a version takes, as a number of values."""
    metadata = version.metadata
    columns = sum(len(schema.index_by_id) for schema in metadata.schemas)
    return 100 + 20 * len(metadata.snapshots) + 8 * columns + 2 * len(metadata.snapshot_log) + 2 * len(metadata.refs)
