"""What the first update of a transaction is applied to: a table that exists, one that is created, or either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hms_iceberg.errors import CommitConflictError, NoSuchTableError
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


class Origin(Protocol):
    """The kind of a transaction: simple, create, replace or create-or-replace."""

    @property
    def start(self) -> MetadataVersion | None:
        """The version that the transaction was begun on, None if the table did not exist."""
        ...

    @property
    def loads(self) -> bool:
        """Whether an attempt looks for the table's newest version first."""
        ...

    @property
    def replays_updates(self) -> bool:
        """Whether updates rely on the state of the table at the start, and are validated when it has moved on."""
        ...

    @property
    def either(self) -> bool:
        """Whether the table may come or go meanwhile: the next attempt replaces or creates it."""
        ...

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The metadata that the updates are applied to, given the newest version."""
        ...


@dataclass(frozen=True)
class Existing:
    """A change of a table that exists."""

    start: MetadataVersion
    loads: bool = True
    replays_updates: bool = True
    either: bool = False

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The newest metadata.

        Raises:
            NoSuchTableError: the table was dropped since.
            CommitConflictError: it was dropped and another one created under its name.
        """
        name = ".".join(identifier)
        if base is None:
            raise NoSuchTableError(
                f"Cannot commit to table {name}: it does not exist any more. It was dropped meanwhile."
            )
        if base.metadata.table_uuid != self.start.metadata.table_uuid:
            raise CommitConflictError(
                f"Cannot commit to table {name}: the change was made on the table with UUID "
                f"{self.start.metadata.table_uuid}, and the name now belongs to one with UUID "
                f"{base.metadata.table_uuid}. Load the table again and repeat the change on it."
            )
        return base.metadata


@dataclass(frozen=True)
class Created:
    """A new table: `initial` is its metadata before the transaction's updates."""

    initial: TableMetadata
    start: MetadataVersion | None = None
    loads: bool = False
    replays_updates: bool = False
    either: bool = False

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The initial metadata; that the name is free is for the swap to find out."""
        return self.initial


@dataclass(frozen=True)
class CreatedOrReplaced:
    """A new table, or the new state of the one that is there when the transaction commits.

    A concurrent change of the table that is replaced is replaced with it, and stays in its history.
    """

    create: Callable[[], TableMetadata]
    replace: Callable[[TableMetadata], TableMetadata]
    start: MetadataVersion | None
    must_exist: bool = False
    loads: bool = True
    replays_updates: bool = False

    @property
    def either(self) -> bool:
        """Whether the table may come or go meanwhile."""
        return not self.must_exist

    def metadata_on(self, base: MetadataVersion | None, identifier: Identifier) -> TableMetadata:
        """The replaced metadata if the table exists, else the created.

        Raises:
            NoSuchTableError: it does not exist, and only replacing was asked for.
        """
        if base is not None:
            return self.replace(base.metadata)
        if self.must_exist:
            raise NoSuchTableError(f"Cannot replace table {'.'.join(identifier)}: it does not exist. Create it.")
        return self.create()
