"""The Hive Metastore as the port that commits and catalogs use."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from hms_iceberg.errors import (
    CommitFailedError,
    ConfigurationError,
    MetastoreAnswerLostError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedError,
)
from hms_iceberg.hms.commit.capability import known_support, learn_support, supports_compare_and_swap
from hms_iceberg.hms.commit.exclusion import Exclusion, Exclusions, Turn
from hms_iceberg.hms.commit.pointer_swap import PointerSwap
from hms_iceberg.hms.commit.renaming import rename_row
from hms_iceberg.hms.commit.scratch_rows import drop_only_scratch_rows, is_scratch
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.lost_answers import ensure_made
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.hive_views import HiveViews, ViewSwap
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.locking.table_lock import TableLock
from hms_iceberg.hms.rows.listing import list_names
from hms_iceberg.hms.rows.namespaces import (
    NOT_CHANGED_BY_HIVE_2,
    change_database,
    check_new_name,
    database_properties,
    new_database,
)
from hms_iceberg.hms.rows.row_settings import RowSettings
from hms_iceberg.hms.rows.table_rows import ICEBERG, is_iceberg_table, table_pointer
from hms_iceberg.metastore import CatalogMetastore, Identifier, MetadataVersion, TablePointer
from hms_iceberg.spec.table_properties import COMMIT_NUM_RETRIES, int_property

logger = logging.getLogger(__name__)

LOCK_ENABLED = "engine.hive.lock-enabled"
CATALOG_LOCK_ENABLED = "iceberg.engine.hive.lock-enabled"


class HiveMetastore:
    """Implements `CatalogMetastore` on a Hive Metastore 2.3, 3 or 4. Safe for threads and across forks.

    Args:
        properties: a catalog's properties: `uri`, `warehouse`, `iceberg.hive.*`, `iceberg.engine.hive.lock-enabled`
            (`true`, `false`, or `auto` for no lock where the server can do without) and those of `ClientSettings`.

    Raises:
        ConfigurationError: a property is missing or cannot be read.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.client = HmsClient(ClientSettings.from_properties(properties))
        self._locks = LockSettings.from_properties(properties)
        self._warehouse = properties.get("warehouse")
        self._lock_enabled = properties.get(CATALOG_LOCK_ENABLED, properties.get(LOCK_ENABLED, "true"))
        _lock_mode(self._lock_enabled, CATALOG_LOCK_ENABLED)
        self._swap = PointerSwap(self.client, RowSettings.from_properties(properties))
        self._exclusions = Exclusions()
        views = ViewSwap(self.client, self._swap.settings)
        self.views = HiveViews(self.client, views, self._exclusion, self._compares)

    def close(self) -> None:
        """Gives kept places in queues back and closes the connections."""
        self._exclusions.release_parked()
        self.client.close()

    # -------------------------------------------------------------------------------------------- commits

    def load(self, identifier: Identifier) -> TablePointer:
        """The table's current pointer.

        Raises:
            NoSuchTableError: no table of that name.
            NotAnIcebergTableError: it is another kind of table; says how to migrate it.
        """
        identifier = _normal(identifier)
        row = self.client.get_table(*identifier)
        self._exclusions.keep_row(identifier, row)
        return table_pointer(row)

    def swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> None:
        """Makes `new` the table's metadata if `base` still is; a create where `base` is None. See the port.

        Raises:
            CommitFailedError: the pointer is not `base` any more.
            LockTimeoutError: the lock was not granted in time; names its holder.
            CommitStateUnknownError: the request was sent, and its fate cannot be told.
            TableAlreadyExistsError, NoSuchTableError, NoSuchNamespaceError, UnsupportedError, MetastoreError:
                nothing was changed.
        """
        identifier = _normal(identifier)
        if base is None:
            self._swap.create(identifier, new)
            return
        held = self._exclusions.held(identifier)
        if held is not None:
            compares = self._compares(held)
            row = self._exclusions.take_row(identifier) if compares else None
            self._swap.commit(identifier, base, new, held, compares, row)
            return
        exclusion = self._exclusions.adopt(identifier)
        waits = exclusion is not None or int_property(new.metadata.properties, COMMIT_NUM_RETRIES) <= 0
        exclusion = exclusion or self._new_exclusion(identifier, base.metadata.properties)
        with self._exclusions.hold(identifier, exclusion):
            if waits:
                exclusion.acquire()
            elif not exclusion.try_acquire():
                # What is before us will make our base stale. The replay takes our place in the queue over.
                raise self._exclusions.park(
                    identifier,
                    CommitFailedError(
                        f"Cannot commit to table {'.'.join(identifier)} yet: another commit is under way."
                    ),
                )
            try:
                self._swap.commit(identifier, base, new, exclusion, self._compares(exclusion))
            except CommitFailedError as error:
                if waits or not isinstance(exclusion, TableLock):
                    raise
                raise self._exclusions.park(identifier, error) from error

    @contextmanager
    def exclusive(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[None]:
        """Holds the table's lock; a load, replay and swap inside cannot lose to another writer. See the port.

        Raises:
            LockTimeoutError: the lock was not granted in time; names its holder.
        """
        with self._exclusion(_normal(identifier), properties):
            yield

    @contextmanager
    def _exclusion(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[Exclusion]:
        """What this thread holds for the table, or kept a place for, or else a new one, for the time of the context."""
        held = self._exclusions.held(identifier)
        if held is not None:
            yield held
            return
        exclusion = self._exclusions.adopt(identifier) or self._new_exclusion(identifier, properties)
        with self._exclusions.hold(identifier, exclusion):
            exclusion.acquire()
            yield exclusion

    def _new_exclusion(self, identifier: Identifier, properties: Mapping[str, str]) -> Exclusion:
        mode = _lock_mode(properties.get(LOCK_ENABLED, self._lock_enabled), LOCK_ENABLED)
        if mode != "true":
            if supports_compare_and_swap(self.client, identifier[0]):
                return Turn(str(self.client.pool), identifier, self._locks.timeout)
            if mode == "false":
                raise UnsupportedError(
                    f"Cannot commit to table {'.'.join(identifier)} without a lock ({LOCK_ENABLED}=false): the "
                    f"metastore at {self.client.pool} does not compare before it alters (HIVE-26882), so that a "
                    f"concurrent commit could be lost. Set {LOCK_ENABLED}=true for every writer, or upgrade it."
                )
        if self._locks.compare:
            learn_support(self.client, identifier[0])
        return TableLock(self.client, identifier[0], identifier[1], self._locks)

    def _compares(self, exclusion: Exclusion) -> bool:
        """Whether the server is to compare: always without a lock, and with one where it is known to be able to."""
        return isinstance(exclusion, Turn) or (self._locks.compare and known_support(self.client) is True)

    # ----------------------------------------------------------------------------------------- namespaces

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        """Creates a namespace.

        Raises:
            NamespaceAlreadyExistsError: it is there already.
            InvalidInputError: an owner type without an owner.
        """
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
        """Names of all namespaces, sorted."""
        return sorted(self.client.list_databases())

    def namespace_properties(self, name: str) -> dict[str, str]:
        """A namespace's properties: `location`, `comment`, the owner, and its parameters.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        return database_properties(self.client.get_database(name.lower()))

    def check_new_name(self, identifier: Identifier) -> None:
        """Refuses names that every metastore refuses.

        Raises:
            InvalidInputError: says which characters a name may have.
        """
        check_new_name(identifier)

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        """Sets `updates` and removes `removals`.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            InvalidInputError: what cannot be removed is to be.
            UnsupportedError: the metastore cannot change the location or the comment (Hive 2); nothing was changed.
        """
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
        """Drops an empty namespace; no file is deleted.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            NamespaceNotEmptyError: tables of any kind are still in it.
        """
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
        """Identifiers of the namespace's Iceberg tables, sorted.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        names = list_names(self.client, namespace.lower(), ICEBERG, is_iceberg_table)
        return [(namespace.lower(), name) for name in names]

    def list_rows(self, namespace: str) -> list[str]:
        """Names of all that is in a namespace, of whatever kind."""
        return sorted(name for name in self.client.list_tables(namespace.lower()) if not is_scratch(name))

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether an Iceberg table of that name exists."""
        try:
            return is_iceberg_table(self.client.get_table(*_normal(identifier)))
        except NoSuchTableError:
            return False

    def drop_table(self, identifier: Identifier) -> None:
        """Removes the table's row; no file is deleted.

        Raises:
            NoSuchTableError: no table of that name.
            NotAnIcebergTableError: it is another kind of table, which is left alone.
        """
        identifier = _normal(identifier)
        pointer = self.load(identifier)
        try:
            self.client.drop_table(identifier[0], identifier[1])
        except MetastoreAnswerLostError as lost:
            ensure_made(lost, f"drop of table {'.'.join(identifier)}", lambda: not self._shows(pointer))

    def _shows(self, pointer: TablePointer) -> bool:
        """Whether the table is there still, as it was."""
        try:
            return self.load(pointer.identifier).metadata_location == pointer.metadata_location
        except NoSuchTableError:
            return False

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Renames a table's row; its files stay where they are. Commits wait for it, and it for them.

        Raises:
            NoSuchTableError: no table `source`.
            NoSuchNamespaceError: the target's namespace does not exist.
            TableAlreadyExistsError: `target` is taken.
            UnsupportedError: the metastore would move the table's files.
        """
        source, target = _normal(source), _normal(target)
        self.client.get_database(target[0])
        pointer = self.load(source)
        with self._exclusion(source, pointer.properties) as exclusion:
            rename_row(self.client, source, target, _renamable, exclusion, self._compares(exclusion))


def hive_client(metastore: CatalogMetastore) -> HmsClient:
    """The client of a catalog's Hive Metastore, for what the port does not have.

    Raises:
        UnsupportedError: it is another kind of metastore.
    """
    if not isinstance(metastore, HiveMetastore):
        raise UnsupportedError(f"This needs a Hive Metastore, and the catalog is on a {type(metastore).__name__}.")
    return metastore.client


def _renamable(row: ttypes.Table) -> TablePointer:
    pointer = table_pointer(row)
    if (row.parameters or {}).get("EXTERNAL", "").upper() != "TRUE":
        name = ".".join(pointer.identifier)
        raise UnsupportedError(
            f"Cannot rename table {name}: it is a managed table, and the metastore would move its files away from its "
            f"metadata. Make it external first: alter table {name} set tblproperties ('EXTERNAL'='TRUE')"
        )
    return pointer


def _normal(identifier: Identifier) -> Identifier:
    """The name as a metastore keeps it: in lower case."""
    namespace, name = identifier
    return (namespace.lower(), name.lower())


def _lock_mode(text: str, name: str) -> str:
    mode = text.strip().lower()
    if mode not in ("true", "false", "auto"):
        raise ConfigurationError(f"Property {name!r}: expected true, false or auto, got {text!r}.")
    return mode
