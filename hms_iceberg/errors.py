"""Every error this package raises on purpose, in one tree.

Catch `IcebergError` to catch them all. Every message says what failed, on which table, column or file,
why (what was expected, what was found) and what to do next.

    IcebergError
    ├── CatalogError                      names and what is behind them
    │   ├── NotFoundError
    │   │   ├── NoSuchNamespaceError
    │   │   ├── NoSuchTableError
    │   │   │   └── NotAnIcebergTableError    the row exists, but is no Iceberg table
    │   │   ├── NoSuchViewError
    │   │   ├── NoSuchSnapshotError
    │   │   └── NoSuchRefError
    │   ├── AlreadyExistsError
    │   │   ├── NamespaceAlreadyExistsError
    │   │   ├── TableAlreadyExistsError
    │   │   ├── ViewAlreadyExistsError
    │   │   └── RefAlreadyExistsError
    │   └── NamespaceNotEmptyError
    ├── CommitError                       a change did not (or may not have) become part of a table
    │   ├── CommitRefusedError                certain: nothing was changed
    │   │   ├── CommitFailedError                 retryable: somebody else was first, replay on the newer state
    │   │   │   └── StaleBaseError                    seen before the metastore was asked to change anything
    │   │   └── CommitConflictError               no replay can help: both changes are named
    │   └── CommitStateUnknownError           nobody knows yet; nothing was deleted
    ├── InvalidInputError                 the caller's arguments, refused before anything is written
    │   ├── UnknownColumnError
    │   ├── TypeMismatchError
    │   ├── SchemaMismatchError
    │   ├── NullValueError
    │   ├── ChangeEventError              an event of a change stream that cannot be applied
    │   ├── ExpressionParseError
    │   ├── SqlParseError
    │   ├── InvalidSchemaError
    │   ├── InvalidSchemaChangeError
    │   ├── InvalidPartitionSpecError
    │   ├── InvalidSortOrderError
    │   └── UnsupportedError                  valid elsewhere, not possible here
    ├── ConfigurationError                properties, URIs and settings
    │   ├── MissingDependencyError
    │   └── JavaNotFoundError
    ├── CorruptFileError                  a file does not hold what the specification says
    │   ├── CorruptMetadataError
    │   ├── CorruptManifestError
    │   └── CorruptDataFileError
    │       └── TamperedFileError                 an encrypted file, or a key, is not what was written
    ├── KeyUnavailableError               the key of an encrypted table cannot be used
    ├── StorageError                      files and object stores
    │   ├── MissingFileError
    │   ├── FileAlreadyExistsError
    │   └── StorageDeniedError
    ├── MetastoreError                    the Hive Metastore answered with an error, or not at all
    │   ├── MetastoreUnavailableError
    │   │   ├── MetastoreTimeoutError         it took a request, and stayed silent
    │   │   └── MetastoreAnswerLostError      the request was sent; nobody knows what became of it
    │   ├── MetastoreAuthenticationError
    │   └── LockError
    │       └── LockTimeoutError              a CommitFailedError as well, but not retryable: it has waited enough
    ├── SqlFailedError                    a statement of `hms-iceberg sql`; the message is Spark's
    ├── IngestError                       events of a topic did not become changes of tables
    │   ├── BadEventError                     an event is no change of a table
    │   └── EventsLostError                   the broker no longer has events that a table needs next
    └── MigrationError                    Hive to Iceberg, and back

`retryable` says whether the same change, replayed on a newer state of the table, may succeed: it is the
only thing that retry policies ask. Errors of the caller's arguments and settings, and of snapshots and refs that he
names, are `ValueError`s too, as in PyIceberg; `hms_iceberg.exceptions` has PyIceberg's names.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from hms_iceberg.printable import printable_lines

_E = TypeVar("_E", bound="IcebergError")


class IcebergError(Exception):
    """Root of everything that this package raises on purpose."""

    retryable: ClassVar[bool] = False

    def with_message(self: _E, message: str) -> _E:
        """An error of the same kind and with the same attributes, for whoever knows more of where it happened.

        Args:
            message: the message of the new error.
        """
        other = type(self).__new__(type(self), message)
        vars(other).update(vars(self))
        return other

    def __str__(self) -> str:
        return printable_lines(super().__str__())  # messages tell names and paths, and are printed by whoever gets them


# ---------------------------------------------------------------------------------------------- catalog


class CatalogError(IcebergError):
    """A name could not be resolved, created or removed."""


class NotFoundError(CatalogError):
    """Something that was asked for does not exist."""


class NoSuchNamespaceError(NotFoundError):
    """The namespace (a database of the Hive Metastore) does not exist."""


class NoSuchTableError(NotFoundError):
    """The table does not exist."""


class NotAnIcebergTableError(NoSuchTableError):
    """The metastore has a table of this name, but it is not an Iceberg table."""


class NoSuchViewError(NotFoundError):
    """The view does not exist."""


class NoSuchSnapshotError(NotFoundError, ValueError):
    """The table has no such snapshot, or none at that time."""


class NoSuchRefError(NotFoundError, ValueError):
    """The table has no branch or tag of this name."""


class AlreadyExistsError(CatalogError):
    """Something that was to be created exists already."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """A namespace of this name exists already."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table (Iceberg or not) of this name exists already."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """A view of this name exists already."""


class RefAlreadyExistsError(AlreadyExistsError, ValueError):
    """A branch or tag of this name exists already."""


class NamespaceNotEmptyError(CatalogError):
    """The namespace still holds tables and cannot be dropped."""


# ----------------------------------------------------------------------------------------------- commit


class CommitError(IcebergError):
    """A change did not become part of a table, or nobody knows whether it did."""


class CommitRefusedError(CommitError):
    """A change did not become part of a table, and nothing was changed."""


class CommitFailedError(CommitRefusedError):
    """The table moved on while the change was made. Nothing was changed; a replay may succeed."""

    retryable: ClassVar[bool] = True


class StaleBaseError(CommitFailedError):
    """The version that a change was made of is not the current one. No request was sent; a replay may succeed."""


class CommitConflictError(CommitRefusedError):
    """A concurrent change took away what this one relied on. Nothing was changed; a replay cannot succeed.

    Args:
        message: the whole message; with `location`, the part of it before the table.
        location: where the table is.
        rest: the part of the message after the table.
    """

    def __init__(self, message: str, location: str | None = None, rest: str = "") -> None:
        super().__init__(message if location is None else f"{message}the table at {location}{rest}")


class CommitStateUnknownError(CommitError):
    """The answer of the metastore was lost and the outcome cannot be told yet. No file was deleted."""


# ------------------------------------------------------------------------------------------------ input


class InvalidInputError(IcebergError, ValueError):
    """An argument was refused before anything was written."""


class UnknownColumnError(InvalidInputError):
    """A column (by name or field id) is not part of the schema."""


class TypeMismatchError(InvalidInputError):
    """A value or an expression does not have the type that is needed."""


class SchemaMismatchError(InvalidInputError):
    """The columns of the data do not fit the table's schema."""


class NullValueError(InvalidInputError):
    """A required column got a null."""


class ChangeEventError(InvalidInputError):
    """An event of a change stream cannot be applied: its key, operation, order or values do not fit.

    Attributes:
        row: the event's place in the source, from 0; in a DataFrame of Spark its `monotonically_increasing_id`.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class ExpressionParseError(InvalidInputError):
    """A filter string could not be read; the message shows the position."""


class SqlParseError(InvalidInputError):
    """A statement of Iceberg's SQL extensions could not be read; the message shows the position.

    Attributes:
        problem: what is wrong, without the place.
        near: the text at the place; empty at the end of the statement.
        line, position: the place, both counted from 1.
    """

    def __init__(self, message: str, problem: str, near: str, line: int, position: int) -> None:
        super().__init__(message)
        self.problem = problem
        self.near = near
        self.line = line
        self.position = position


class InvalidSchemaError(InvalidInputError):
    """A schema breaks a rule of the specification (duplicate ids or names, bad identifier fields ...)."""


class InvalidSchemaChangeError(InvalidInputError):
    """A schema change that the specification, or the table's specs and orders, do not allow."""


class InvalidPartitionSpecError(InvalidInputError):
    """A partition spec, or a change of one, that the specification does not allow."""


class InvalidSortOrderError(InvalidInputError):
    """A sort order that the specification does not allow."""


class UnsupportedError(InvalidInputError):
    """Valid in general, but not possible here: the message says why and what works instead."""


# ---------------------------------------------------------------------------------------- configuration


class ConfigurationError(IcebergError, ValueError):
    """A property, a URI or a setting is missing or cannot be used."""


class MissingDependencyError(ConfigurationError):
    """An optional Python package is needed; the message has the command that installs it."""


class JavaNotFoundError(ConfigurationError):
    """No Java, or too old a Java, for Spark or the embedded metastore."""


# ------------------------------------------------------------------------------------------------ files


class CorruptFileError(IcebergError):
    """A file does not hold what the specification says it should."""


class CorruptMetadataError(CorruptFileError):
    """A table metadata file cannot be read, or contradicts itself."""


class CorruptManifestError(CorruptFileError):
    """A manifest or a manifest list cannot be read, or contradicts itself."""


class CorruptDataFileError(CorruptFileError):
    """A data file, delete file or statistics file cannot be read."""


class TamperedFileError(CorruptDataFileError, CorruptManifestError, CorruptMetadataError):
    """A file of an encrypted table, or a key, was changed or exchanged after it was written."""


class KeyUnavailableError(IcebergError):
    """The key of an encrypted table is not there, may not be used, or its service does not answer."""


class StorageError(IcebergError):
    """A file system or object store failed."""


class MissingFileError(StorageError):
    """A file that should exist does not."""


class FileAlreadyExistsError(StorageError):
    """A file that was to be created exists already; it was not touched."""


class StorageDeniedError(StorageError):
    """The user of this process, or its key, lacks the right."""


# -------------------------------------------------------------------------------------------- metastore


class MetastoreError(IcebergError):
    """The Hive Metastore refused a call."""


class MetastoreUnavailableError(MetastoreError):
    """No Hive Metastore answered at any of the addresses."""


class MetastoreTimeoutError(MetastoreUnavailableError, TimeoutError):
    """The Hive Metastore took a request that changes nothing, and did not answer in time."""


class MetastoreAnswerLostError(MetastoreUnavailableError):
    """The connection broke after a request that may not be repeated was sent: it may have been carried out."""


class MetastoreAuthenticationError(MetastoreError):
    """The metastore does not let this client in, or is not the one that it should be."""


class LockError(MetastoreError):
    """The metastore's lock on a table could not be taken, kept or released."""


class LockTimeoutError(LockError, CommitFailedError):
    """Somebody else held the table's lock for longer than was waited; the message names the holder.

    Nothing was changed, as with every `CommitFailedError`. It is not retried, as the whole time that the settings allow
    for waiting is over.
    """

    retryable: ClassVar[bool] = False


# ----------------------------------------------------------------------------------------------- ingest


class IngestError(IcebergError):
    """Events of a topic did not become changes of tables; where the tables are, the next start finds."""


class BadEventError(IngestError):
    """An event is no change of a table; the message names its topic, partition and offset. Nothing was written."""


class EventsLostError(IngestError):
    """The broker no longer has the events that a table needs next; the message says which, and what to do."""


# -------------------------------------------------------------------------------------------- migration


class SqlFailedError(IcebergError):
    """A statement of `hms-iceberg sql` failed; the message is Spark's."""


class MigrationError(IcebergError):
    """A migration stopped; the message says in which state the table was left and what to run next."""
