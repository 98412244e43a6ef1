"""The port to a metastore: where a table's pointer lives and how it is swapped.

A commit needs three calls of a metastore (`Metastore`); a catalog needs the names beside them (`CatalogMetastore`).
Both are protocols: the Hive Metastore, an in-memory one for tests and file-system tables implement them, and one
contract test runs against each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.views.view_metadata import ViewMetadata

Identifier: TypeAlias = tuple[str, ...]
"""A table's name in parts, the namespace first: `("db", "events")`."""


@dataclass(frozen=True)
class TablePointer:
    """What a metastore knows of a table: where its current metadata is.

    Attributes:
        identifier: the table's name as the metastore spells it.
        metadata_location: location of the current metadata JSON.
        properties: parameters of the metastore's row, Iceberg's and others'.
    """

    identifier: Identifier
    metadata_location: str
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetadataVersion:
    """A table's metadata together with the location of the JSON file that holds it."""

    location: str
    metadata: TableMetadata


@dataclass(frozen=True)
class ViewMetadataVersion:
    """A view's metadata together with the location of the JSON file that holds it."""

    location: str
    metadata: ViewMetadata


Version: TypeAlias = MetadataVersion | ViewMetadataVersion
"""What a row of a metastore points at."""


@runtime_checkable
class Metastore(Protocol):
    """What a commit needs of a metastore. Safe to use from several threads."""

    def load(self, identifier: Identifier) -> TablePointer:
        """The table's current pointer, read from the metastore now, never from a cache.

        Raises:
            NoSuchTableError: no table of that name (or no such namespace).
            NotAnIcebergTableError: the name is another kind of table; says how to migrate it.
            MetastoreError: the metastore cannot be reached or refuses.
        """
        ...

    def swap(
        self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion
    ) -> MetadataVersion | None:
        """Makes `new` the table's metadata if `base` still is (a create where `base` is None).

        The metadata JSON of `new` is written before this call. An implementation has exactly three outcomes, and it
        neither retries a conflict nor deletes a file: both are the transaction's duty.

        - returns: `new` is, or was until a later commit, the current metadata. A metastore that gave it another
          location (a file system table) returns it so; all others return None;
        - a certain failure: `CommitFailedError` (the pointer no longer is `base`; retryable), `LockTimeoutError` (a
          `CommitFailedError` that is not retryable: the lock was waited for in vain), `LockError`,
          `TableAlreadyExistsError` for a create, `NoSuchTableError` for a table that is gone, or another error raised
          *before* anything was sent. The pointer does not name `new` and never will;
        - `CommitStateUnknownError`: the request was sent and its fate cannot be told (lost answer, lost lock).

        Called within `exclusive` for the same table and thread, it uses the lock held there.
        """
        ...

    def exclusive(self, identifier: Identifier, properties: Mapping[str, str]) -> AbstractContextManager[None]:
        """Holds the table's lock, so that a load, replay and swap inside cannot lose to another writer.

        Args:
            identifier: the table to lock; it must exist.
            properties: the table's properties, which may switch locking off (`engine.hive.lock-enabled`).

        Where locks are off the context only queues the writers of this process fairly.

        Raises:
            LockTimeoutError: on entry, where the lock was not granted in time; names its holder.
            LockError: on entry, where the metastore cannot lock.
        """
        ...


@runtime_checkable
class CatalogMetastore(Metastore, Protocol):
    """The names of a metastore: its namespaces, and which Iceberg tables are in them."""

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        """Creates a namespace (`location`, `comment`, `owner` have their own places in a Hive Metastore).

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

        Raises:
            NoSuchTableError: no table `source`.
            NoSuchNamespaceError: the target's namespace does not exist.
            TableAlreadyExistsError: `target` is taken.
        """
        ...


@runtime_checkable
class ViewMetastore(Protocol):
    """The views of a metastore. Their names are those of tables as well: a name is one or the other."""

    def load(self, identifier: Identifier) -> TablePointer:
        """The view's current pointer, read from the metastore now.

        Raises:
            NoSuchViewError: no Iceberg view of that name.
        """
        ...

    def swap(self, identifier: Identifier, base: ViewMetadataVersion | None, new: ViewMetadataVersion) -> None:
        """Makes `new` the view's metadata if `base` still is (a create where `base` is None), as `Metastore.swap` does.

        Raises:
            ViewAlreadyExistsError, TableAlreadyExistsError: the name is taken.
            NoSuchViewError: the view is gone.
            CommitFailedError: the pointer is not `base` any more.
            CommitStateUnknownError: nobody can tell.
        """
        ...

    def exclusive(self, identifier: Identifier) -> AbstractContextManager[None]:
        """Holds the view's lock, so that a load and swap inside cannot lose to another writer."""
        ...

    def list(self, namespace: str) -> list[Identifier]:
        """Identifiers of the namespace's Iceberg views, sorted.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
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

        Raises:
            NoSuchViewError: no view `source`.
            NoSuchNamespaceError: the target's namespace does not exist.
            ViewAlreadyExistsError: `target` is taken, by a view or a table.
        """
        ...
