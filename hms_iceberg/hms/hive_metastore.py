"""The Hive Metastore behind the ports that commits and catalogs use."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from hms_iceberg.errors import (
    CommitFailedError,
    MetastoreAnswerLostError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from hms_iceberg.hms.commit.lease import HiveLease
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.commit.pointer_kinds import TableSwap, ViewSwap
from hms_iceberg.hms.commit.scratch_rows import drop_only_scratch_rows, is_scratch
from hms_iceberg.hms.commit.several_tables.lease import HiveSeveralLease
from hms_iceberg.hms.commit.several_tables.unfinished_transactions import UnfinishedTransactions
from hms_iceberg.hms.connection.answers import ensure_made
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.property_reader import PropertyReader
from hms_iceberg.hms.rows.all_rows import HiveTableRows, list_names
from hms_iceberg.hms.rows.column_types import check_column_names
from hms_iceberg.hms.rows.namespaces import (
    NOT_CHANGED_BY_HIVE_2,
    change_database,
    check_namespace,
    check_new_name,
    database_properties,
    new_database,
)
from hms_iceberg.hms.rows.table_rows import (
    ICEBERG,
    ICEBERG_VIEW,
    METADATA_LOCATION,
    RowSettings,
    is_iceberg_table,
    is_iceberg_view,
)
from hms_iceberg.hms.rows.unchanged_rows import TRUST_NOTIFICATIONS, UnchangedRows
from hms_iceberg.metastore import CatalogMetastore, Identifier, MetadataVersion, TablePointer, ViewMetadataVersion
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.intents import Intent

logger = logging.getLogger(__name__)


class HiveMetastore:
    """`CatalogMetastore` on a Hive Metastore 2.3, 3 or 4, safe for threads and across forks. Properties: `uri`,
    `warehouse`, `iceberg.hive.*`, `iceberg.engine.hive.lock-enabled` (`true`, `false`, `auto`),
    `iceberg.hive.trust-notifications` (see `UnchangedRows`), and those of `ClientSettings`."""

    def __init__(self, properties: Mapping[str, str], storage: Storage | None = None) -> None:
        self.client = HmsClient(ClientSettings.from_properties(properties))
        self._warehouse = properties.get("warehouse")
        self._locks = LockChoice.from_properties(self.client, properties)
        rows = RowSettings.from_properties(properties)
        self._swap = TableSwap(self.client, rows)
        trusts = PropertyReader(properties).boolean(TRUST_NOTIFICATIONS, False)
        self.unfinished = UnfinishedTransactions(self._swap, self._locks, storage)
        self._unchanged = UnchangedRows(self.client) if trusts else None
        self.capability = self._locks.capability
        self.table_rows = HiveTableRows(self.client)
        self.views = HiveViews(self.client, ViewSwap(self.client, rows), self._locks)

    def check_settings(self) -> None:
        """Refuses settings that this server cannot keep, with the setting that the server needs."""
        if self._unchanged is not None:
            self._unchanged.check()

    def close(self) -> None:
        self.client.close()

    # -------------------------------------------------------------------------------------------- commits

    def load(self, identifier: Identifier) -> TablePointer:
        identifier = _normal(identifier)

        def read() -> TablePointer:
            return self.unfinished.pointer(self._swap.read(identifier))

        return read() if self._unchanged is None else self._unchanged.pointer(identifier, read)

    def shows(self, location: str, new: MetadataVersion) -> bool:
        return location == new.location

    @contextmanager
    def lease(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[HiveLease[MetadataVersion]]:
        lease = HiveLease(_normal(identifier), self._swap, self._locks, properties, self.unfinished)
        try:
            yield lease
        finally:
            lease.release()

    def finish(self, intent: Intent) -> None:
        """Carries a transaction on several tables forward, or takes it back, whose owner left it open."""
        self.unfinished.finish_intent(intent)

    def check_several(self) -> None:
        _ = self.unfinished.storage

    @contextmanager
    def lease_of_several(self, tables: Mapping[Identifier, Mapping[str, str]]) -> Iterator[HiveSeveralLease]:
        properties = {_normal(name): each for name, each in tables.items()}
        lease = HiveSeveralLease(properties, self._swap, self._locks, self.unfinished)
        try:
            yield lease
        finally:
            lease.release()

    # ----------------------------------------------------------------------------------------- namespaces

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        check_namespace(name)
        database = new_database(name.lower(), properties, self._warehouse)
        try:
            self.client.create_database(database)
        except MetastoreAnswerLostError as lost:
            wanted = database_properties(database)
            ensure_made(lost, f"creation of namespace {name}", lambda: self._namespace_is(database.name, wanted))
        except NamespaceAlreadyExistsError as error:
            raise NamespaceAlreadyExistsError(
                f"Namespace {name} exists already in the metastore at {self.client.pool}. Choose another name."
            ) from error

    def _namespace_is(self, name: str, properties: Mapping[str, str]) -> bool:
        try:
            found = self.namespace_properties(name)
        except NoSuchNamespaceError:
            return False
        return all(found.get(key) == value for key, value in properties.items() if key != "location")

    def list_namespaces(self) -> list[str]:
        return sorted(self.client.list_databases())

    def namespace_properties(self, name: str) -> dict[str, str]:
        return database_properties(self.client.get_database(name.lower()))

    def check_new_name(self, identifier: Identifier) -> None:
        """Refuses names that every metastore refuses."""
        check_new_name(identifier)
        self._locks.check_name(identifier, {})

    def check_columns(self, identifier: Identifier, before: Schema | None, after: Schema) -> None:
        """Refuses new names that differ from another column's in case only."""
        check_column_names(before, after, ".".join(identifier))

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        """Sets `updates` and removes `removals`; Hive 2 cannot change the location or the comment."""
        name = name.lower()
        database = self.client.get_database(name)
        change_database(copy.copy(database), updates, removals)  # refuses before anything is sent
        before = database_properties(database)
        doubtful = {
            key: updates[key] for key in NOT_CHANGED_BY_HIVE_2 if updates.get(key, before.get(key)) != before.get(key)
        }
        if doubtful:
            change_database(database, doubtful, ())
            self.client.alter_database(name, database)
            database = self.client.get_database(name)
            after = database_properties(database)
            ignored = [key for key, value in doubtful.items() if after.get(key) != value]
            if ignored:
                raise UnsupportedError(
                    f"Cannot change {' and '.join(ignored)} of namespace {name}: the metastore at {self.client.pool} "
                    f"left it at {after.get(ignored[0])!r}. Hive 2 ignores every such change, Hive 4 a location among "
                    "those of managed tables. No other property was changed."
                )
        change_database(database, updates, removals)
        self.client.alter_database(name, database)

    def drop_namespace(self, name: str) -> None:
        name = name.lower()
        self.client.get_database(name)
        try:
            try:
                self.client.drop_database(name)
            except NamespaceNotEmptyError:
                if not drop_only_scratch_rows(self.client, name):
                    raise
                self.client.drop_database(name)
        except MetastoreAnswerLostError as lost:
            ensure_made(lost, f"drop of namespace {name}", lambda: not self._namespace_is(name, {}))

    # --------------------------------------------------------------------------------------------- tables

    def list_iceberg_tables(self, namespace: str) -> list[Identifier]:
        names = list_names(self.client, namespace.lower(), ICEBERG, is_iceberg_table)
        return [(namespace.lower(), name) for name in names]

    def list_rows(self, namespace: str) -> list[str]:
        """Names of all rows in a namespace: tables of every kind, and views."""
        return sorted(name for name in self.client.list_tables(namespace.lower()) if not is_scratch(name))

    def table_exists(self, identifier: Identifier) -> bool:
        try:
            return is_iceberg_table(self.client.get_table(*_normal(identifier)))
        except NoSuchTableError:
            return False

    def drop_table(self, identifier: Identifier) -> None:
        identifier = _normal(identifier)
        self._finish(identifier)
        pointer = self.load(identifier)
        try:
            self.client.drop_table(identifier[0], identifier[1])
        except MetastoreAnswerLostError as lost:
            ensure_made(lost, f"drop of table {'.'.join(identifier)}", lambda: not self._shows(pointer))

    def _finish(self, identifier: Identifier) -> None:
        """Finishes a transaction on several tables that was left open on a table that is to go."""
        mark = self.unfinished.needs_finishing(self._swap.read(identifier))
        if mark is not None:
            self.unfinished.finish(identifier, mark)

    def _shows(self, pointer: TablePointer) -> bool:
        """Whether the table is still there, as it was."""
        try:
            return self.load(pointer.identifier).metadata_location == pointer.metadata_location
        except NoSuchTableError:
            return False

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Renames a table's row, which an external table must have; commits wait for the rename, and it for them."""
        source, target = _normal(source), _normal(target)
        self.client.get_database(target[0])
        self._finish(source)
        pointer = self.load(source)
        with self.lease(source, pointer.properties) as lease:
            lease.acquire()
            lease.rename(target)


def hive_client(metastore: CatalogMetastore) -> HmsClient:
    """The client of a catalog's Hive Metastore, for calls that the port does not have."""
    if not isinstance(metastore, HiveMetastore):
        raise UnsupportedError(f"This needs a Hive Metastore, and the catalog is on a {type(metastore).__name__}.")
    return metastore.client


def _normal(identifier: Identifier) -> Identifier:
    """The name as a metastore keeps it: in lower case."""
    namespace, name = identifier
    return (namespace.lower(), name.lower())


# ---------------------------------------------------------------------------------------------------------------- views


class HiveViews:
    """Implements `ViewMetastore` by rows of Hive views that point at view metadata, as Iceberg's Java has them."""

    def __init__(self, client: HmsClient, swap: ViewSwap, locks: LockChoice) -> None:
        self._client = client
        self._swap = swap
        self._locks = locks

    def load(self, identifier: Identifier) -> TablePointer:
        return self._swap.pointer(self._swap.read(_normal(identifier)))

    def shows(self, location: str, new: ViewMetadataVersion) -> bool:
        return location == new.location

    @contextmanager
    def lease(self, identifier: Identifier) -> Iterator[HiveLease[ViewMetadataVersion]]:
        lease = HiveLease(_normal(identifier), self._swap, self._locks, {})
        try:
            yield lease
        finally:
            lease.release()

    def _is_view(self, name: Identifier) -> bool:
        try:
            self.load(name)
        except NoSuchViewError:
            return False
        return True

    def list(self, namespace: str) -> list[Identifier]:
        names = list_names(self._client, namespace.lower(), ICEBERG_VIEW, is_iceberg_view)
        return [(namespace.lower(), name) for name in names]

    def names_file(self, metadata_location: str) -> bool:
        """Whether any row names a file with this file name, in whatever folder; names are unique."""
        return HiveTableRows(self._client).is_any_with(METADATA_LOCATION, metadata_location.rpartition("/")[2])

    def drop(self, identifier: Identifier) -> None:
        name = _normal(identifier)
        self.load(name)
        try:
            self._client.drop_table(name[0], name[1])
        except MetastoreAnswerLostError as lost:
            ensure_made(lost, f"drop of view {'.'.join(name)}", lambda: not self._is_view(name))
        except NoSuchTableError as error:
            raise NoSuchViewError(f"There is no view {'.'.join(name)} any more.") from error

    def rename(self, source: Identifier, target: Identifier) -> None:
        source, target = _normal(source), _normal(target)
        self._client.get_database(target[0])
        self.load(source)
        with self.lease(source) as lease:
            lease.acquire()
            try:
                lease.rename(target)
            except TableAlreadyExistsError as error:
                raise ViewAlreadyExistsError(str(error)) from error
            except NoSuchTableError as error:
                raise CommitFailedError(f"Cannot rename view {'.'.join(source)}: it was dropped meanwhile.") from error
