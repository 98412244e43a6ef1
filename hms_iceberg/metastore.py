"""The port to a metastore: the pointer to a table's metadata, and its swap.

A commit needs a lease of a metastore (`Metastore`, `Lease`); a catalog needs the names beside it (`CatalogMetastore`).
All are protocols: the Hive Metastore, an in-memory one for tests and file-system tables implement them, and one
contract test runs against each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata
from hms_iceberg.spec.schema import Schema

Identifier: TypeAlias = tuple[str, ...]
"""A table's name in parts, the namespace first: `("db", "events")`."""


@dataclass(frozen=True)
class TablePointer:
    """A metastore's record of a table: the location of its current metadata.

    Attributes:
        identifier: the table's name as the metastore spells it.
        metadata_location: location of the current metadata JSON.
        properties: parameters of the metastore's row, Iceberg's and others'.
        location: the table's folder as the row has it; empty if no row says it.
        is_folder: whether the folder itself is the table, so that metadata elsewhere is not its own.
    """

    identifier: Identifier
    metadata_location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str = ""
    is_folder: bool = False


@dataclass(frozen=True)
class MetadataVersion:
    """A table's metadata together with the location of the JSON file that holds it."""

    location: str
    metadata: TableMetadata

    @property
    def uuid(self) -> str | None:
        """The table's UUID, if it has one."""
        return self.metadata.table_uuid

    @property
    def identity(self) -> tuple[str, str | None, int]:
        """A key that no other version has, not even one in a file of the same name; see `is_never_reused`."""
        return self.location, self.metadata.table_uuid, self.metadata.last_updated_ms

    @property
    def previous(self) -> tuple[str, ...]:
        """Locations of the previous metadata files, oldest first, as far back as the metadata log goes."""
        return tuple(entry.metadata_file for entry in self.metadata.metadata_log)

    @property
    def snapshot_ids(self) -> frozenset[int]:
        """The ids of the version's snapshots."""
        return frozenset(snapshot.snapshot_id for snapshot in self.metadata.snapshots)


@dataclass(frozen=True)
class ViewMetadataVersion:
    """A view's metadata together with the location of the JSON file that holds it."""

    location: str
    metadata: ViewMetadata

    @property
    def uuid(self) -> str:
        """The view's UUID."""
        return self.metadata.view_uuid

    @property
    def previous(self) -> tuple[str, ...]:
        """No locations: a view's metadata has no log."""
        return ()

    @property
    def snapshot_ids(self) -> frozenset[int]:
        """No ids: a view has no snapshots."""
        return frozenset()


Version: TypeAlias = MetadataVersion | ViewMetadataVersion
"""What a row of a metastore points at."""


V = TypeVar("V", MetadataVersion, ViewMetadataVersion)


class Lease(Protocol[V]):
    """The locks and requests that one commit holds of a metastore over all its attempts, for one name and one thread.

    A lease is a context, at whose end whatever it holds is given back. It begins with nothing: an optimistic attempt
    loads and swaps; an attempt that must not lose to others acquires the lock before.
    """

    @property
    def blocks_others(self) -> bool:
        """Whether others wait for this commit, as it holds the lock or a place in its queue: it must not pause."""
        ...

    @property
    def refuses_late(self) -> bool:
        """Whether the last swap is refused for good once another version has taken its base's place.

        If not, a request whose answer was lost may be carried out at any time, and take the place of whatever is then
        current: nobody can say that it was not made.
        """
        ...

    def load(self) -> TablePointer:
        """Reads the current pointer from the metastore now, never from a cache.

        Raises:
            NoSuchTableError, NoSuchViewError: no such name (or no such namespace).
            NotAnIcebergTableError: the name is another kind of table; says how to migrate it.
            MetastoreError: the metastore cannot be reached or refuses.
        """
        ...

    def acquire(self) -> None:
        """Waits for the lock, so that a version loaded afterwards is current until the swap; a second call does
        nothing.

        If locks are off, only the writers of this process are kept away, one after the other.

        Raises:
            LockTimeoutError: the lock was not granted in time; names its holder.
            LockError: the metastore cannot lock.
        """
        ...

    def swap(self, base: V | None, new: V) -> V | None:
        """Makes `new` the current version if `base` still is (a create if `base` is None).

        The metadata JSON of `new` is written before this call. A lock that is not held yet is taken if it is free. An
        implementation has exactly three outcomes, and it neither retries a conflict nor deletes a file: both are the
        transaction's duty.

        - a return: `new` is, or was until a later commit, the current metadata;
        - a certain failure, or any error before anything was sent: the pointer does not name `new` and never will;
        - an unknown outcome: the request was sent, and nobody can say yet whether it was carried out (lost answer, lost
          lock).

        After a failure the lease keeps the lock only if the next attempt can then lose to nobody.

        Args:
            base: the version that has to be current still; None to create the table or view.
            new: the new version.

        Returns:
            the version under the location that the metastore gave it (a file system table); None if it kept that of
            `new`.

        Raises:
            CommitFailedError: the pointer no longer is `base`, or another commit is under way; retryable.
            LockTimeoutError: the lock was waited for in vain; a `CommitFailedError` that is not retryable.
            LockError: the metastore cannot lock.
            TableAlreadyExistsError, ViewAlreadyExistsError: the name to create is taken.
            NoSuchTableError, NoSuchViewError: the table or view is gone.
            CommitStateUnknownError: the outcome is unknown.
        """
        ...


@runtime_checkable
class Metastore(Protocol):
    """The part of a metastore that a commit needs. Implementations are safe for threads."""

    def load(self, identifier: Identifier) -> TablePointer:
        """The table's current pointer; see `Lease.load`."""
        ...

    def shows(self, location: str, new: MetadataVersion) -> bool:
        """Whether the metadata file at `location` is `new`, which the metastore may have stored under another name.

        Args:
            location: location of the metadata file.
            new: the new version.
        """
        ...

    def lease(
        self, identifier: Identifier, properties: Mapping[str, str]
    ) -> AbstractContextManager[Lease[MetadataVersion]]:
        """Opens a lease for one commit; the metastore is not asked yet.

        Args:
            identifier: the table.
            properties: the table's properties, which may switch locking off (`engine.hive.lock-enabled`).

        Returns:
            a context manager; leaving it gives the lock back, if one was taken.
        """
        ...


@dataclass(frozen=True)
class TableSwitch:
    """One table's part of a commit to several.

    Attributes:
        identifier: the table's name as the metastore spells it.
        base, new: its versions before and after.
        checksum: SHA-256 of the new metadata file, in hexadecimal.
    """

    identifier: Identifier
    base: MetadataVersion
    new: MetadataVersion
    checksum: str


class SeveralLease(Protocol):
    """The locks and requests that one commit to several tables holds of a metastore over all its attempts."""

    @property
    def blocks_others(self) -> bool:
        """Whether others wait for this commit; see `Lease.blocks_others`."""
        ...

    def load(self, identifier: Identifier) -> TablePointer:
        """Reads the current pointer of one of the tables; see `Lease.load`."""
        ...

    def acquire(self) -> None:
        """Waits for the locks of all tables; see `Lease.acquire`."""
        ...

    def swap(self, switches: Sequence[TableSwitch]) -> Mapping[Identifier, MetadataVersion] | None:
        """Makes every table show its new version, or none of them; the outcomes and errors are those of `Lease.swap`.

        Args:
            switches: two or more, of different tables, in the order in which every commit takes tables.

        Returns:
            the versions under the locations that the metastore gave them; None if it kept those given.
        """
        ...


@runtime_checkable
class SwapsSeveral(Protocol):
    """A metastore that can commit to several tables at once."""

    def check_several(self) -> None:
        """Refuses if this metastore, as it is set up, cannot.

        Raises:
            UnsupportedError: says why.
        """
        ...

    def lease_of_several(self, tables: Mapping[Identifier, Mapping[str, str]]) -> AbstractContextManager[SeveralLease]:
        """Opens a lease for one commit to several tables; the metastore is not asked yet.

        Args:
            tables: their names as the metastore spells them, with their properties.
        """
        ...


@runtime_checkable
class CatalogMetastore(Metastore, Protocol):
    """The names in a metastore: its namespaces, and the Iceberg tables in them."""

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        """Creates a namespace (`location`, `comment`, `owner` have their own places in a Hive Metastore).

        Args:
            name: the namespace.
            properties: `location`, `comment`, `owner`, and any others.

        Raises:
            NamespaceAlreadyExistsError: it is there already.
        """
        ...

    def list_namespaces(self) -> list[str]:
        """Names of all namespaces, sorted."""
        ...

    def namespace_properties(self, name: str) -> dict[str, str]:
        """A namespace's properties, `location` among them.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        ...

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        """Sets `updates` and removes `removals` (absent ones are ignored).

        Args:
            name: the namespace.
            updates: keys to set, with their values.
            removals: keys to remove.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        ...

    def drop_namespace(self, name: str) -> None:
        """Drops an empty namespace.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            NamespaceNotEmptyError: tables of any kind are still in it.
        """
        ...

    def check_new_name(self, identifier: Identifier) -> None:
        """Refuses a name that no new table or view can have, before anything is written for it.

        Raises:
            InvalidInputError: says which characters a name may have.
        """
        ...

    def list_iceberg_tables(self, namespace: str) -> list[Identifier]:
        """Identifiers of the namespace's Iceberg tables, sorted; tables of other kinds are not among them.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        ...

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether an Iceberg table of that name exists."""
        ...

    def drop_table(self, identifier: Identifier) -> None:
        """Removes the table's row and nothing else: no data or metadata file is deleted.

        Raises:
            NoSuchTableError: no table of that name.
            NotAnIcebergTableError: the name is another kind of table, which is left alone.
        """
        ...

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Renames a table's row; its files stay where they are.

        Args:
            source: the name that it has, as namespace and table.
            target: the name that it gets.

        Raises:
            NoSuchTableError: no table `source`.
            NoSuchNamespaceError: the target's namespace does not exist.
            TableAlreadyExistsError: `target` is taken.
        """
        ...


@runtime_checkable
class ShowsColumns(Protocol):
    """A metastore whose rows name the columns of a table, by rules of its own."""

    def check_columns(self, identifier: Identifier, before: Schema | None, after: Schema) -> None:
        """Refuses columns that the metastore cannot name, before anything is written for them.

        Args:
            identifier: the table.
            before: the columns that it has, which are accepted as they are; None for a new table.
            after: the columns that it is to have.

        Raises:
            InvalidSchemaError: says which, and why.
        """
        ...


@dataclass(frozen=True)
class TableRow:
    """A metastore's row of a table of any kind, with the location of its files.

    Attributes:
        identifier: its name, as the metastore spells it.
        location: its folder.
        properties: parameters of the row; those of an Iceberg table are its own properties, and `metadata_location`.
        is_iceberg: whether it is an Iceberg table.
        has_partitions: whether its files are in partitions, each at a location of its own.
    """

    identifier: Identifier
    location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    is_iceberg: bool = False
    has_partitions: bool = False

    def __str__(self) -> str:
        return ".".join(self.identifier)


@runtime_checkable
class TableRows(Protocol):
    """A metastore that lists the locations of all of its tables."""

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        """Lists all tables that have files, Iceberg's and others, in bulk.

        Args:
            namespace: only its tables; None for those of all namespaces.
        """
        ...

    def row(self, identifier: Identifier) -> TableRow | None:
        """The row of a table of any kind; None if there is none, or it is a view."""
        ...

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        """The locations of a table's partitions.

        Raises:
            NoSuchTableError: it was dropped or renamed meanwhile.
        """
        ...


class TableKind(str, Enum):
    """The kind of a name in a metastore."""

    ICEBERG = "iceberg"
    ICEBERG_VIEW = "iceberg view"
    HIVE = "hive"
    HIVE_VIEW = "hive view"


@dataclass(frozen=True)
class ListedTable:
    """A name in a metastore and what is told of it.

    Attributes:
        identifier: the name; a namespace alone if its tables cannot be listed.
        kind: what it is; None if that is not told.
        location: its folder; empty for views.
        properties: parameters of its row.
        error: why the metastore does not tell of it, if so.
    """

    identifier: Identifier
    kind: TableKind | None
    location: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None


@runtime_checkable
class ListsEverything(Protocol):
    """A metastore that lists all of its names: tables, views, and those of which it tells nothing but an error."""

    def listed(
        self, of_namespace: Callable[[str], bool], of_table: Callable[[Identifier], bool]
    ) -> Iterator[ListedTable]:
        """Lists tables and views of all kinds, in bulk.

        Args:
            of_namespace: which namespaces are wanted.
            of_table: which of their names.
        """
        ...


@runtime_checkable
class ViewMetastore(Protocol):
    """The views of a metastore. Views and tables share one set of names."""

    def load(self, identifier: Identifier) -> TablePointer:
        """The view's current pointer; see `Lease.load`."""
        ...

    def shows(self, location: str, new: ViewMetadataVersion) -> bool:
        """Whether the metadata file at `location` is `new`.

        Args:
            location: location of the metadata file.
            new: the new version.
        """
        ...

    def lease(self, identifier: Identifier) -> AbstractContextManager[Lease[ViewMetadataVersion]]:
        """Opens a lease for one commit to a view."""
        ...

    def list(self, namespace: str) -> list[Identifier]:
        """Identifiers of the namespace's Iceberg views, sorted.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        ...

    def names_file(self, metadata_location: str) -> bool:
        """Whether the row of any view or table may name a metadata file now, in any spelling.

        Raises:
            MetastoreError: the metastore cannot be asked.
        """
        ...

    def drop(self, identifier: Identifier) -> None:
        """Removes the view's row and nothing else.

        Raises:
            NoSuchViewError: no Iceberg view of that name.
        """
        ...

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a view's row; its files stay where they are.

        Args:
            source: the name that it has.
            target: the name that it gets.

        Raises:
            NoSuchViewError: no view `source`.
            NoSuchNamespaceError: the target's namespace does not exist.
            ViewAlreadyExistsError: `target` is taken, by a view or a table.
        """
        ...


_NO_NAME = re.compile(r"[/\\\x00-\x1f\x7f]")
_HALF = re.compile("[\ud800-\udfff]")


def table_identifier(identifier: str | Identifier) -> Identifier:
    """`"db.name"` or `("db", "name")` as a tuple of the two.

    Raises:
        InvalidInputError: not a namespace and a name.
    """
    parts = tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)
    if len(parts) != 2 or not all(isinstance(part, str) and part.strip() for part in parts):
        raise InvalidInputError(
            f"Not the name of a table: {identifier!r}. Expected a namespace and a name, such as 'db.events' or "
            "('db', 'events')."
        )
    for part in parts:
        if part.strip() in (".", "..") or _NO_NAME.search(part):
            raise InvalidInputError(
                f"Not the name of a table: {identifier!r}. {part!r} would lead to another folder: a name has no slash "
                "and no control character, and is neither '.' nor '..'."
            )
        _refuse_half_characters(part, "table")
    return parts


def namespace_name(namespace: str | Identifier) -> str:
    """`"db"` or `("db",)` as text.

    Raises:
        InvalidInputError: not one name; a Hive Metastore has one level of namespaces.
    """
    parts = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    if len(parts) != 1 or not isinstance(parts[0], str) or not parts[0].strip() or "." in parts[0]:
        raise InvalidInputError(
            f"Not the name of a namespace: {namespace!r}. Expected one name, such as 'db' or ('db',): a Hive "
            "Metastore has one level of namespaces."
        )
    _refuse_half_characters(parts[0], "namespace")
    return parts[0]


def _refuse_half_characters(name: str, what: str) -> None:
    half = _HALF.search(name)
    if half:
        raise InvalidInputError(
            f"Not the name of a {what}: {name!r}. {half[0]!r} is half of a surrogate pair, which UTF-8 does not hold. "
            "Leave it out."
        )
