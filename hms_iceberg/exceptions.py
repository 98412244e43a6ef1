"""PyIceberg's names of errors; `hms_iceberg.errors` has the whole tree.

`CommitFailedException` is every commit of which it is certain that it changed nothing, and `ValidationError` every
refusal of an argument.
"""

from __future__ import annotations

from hms_iceberg import errors
from hms_iceberg.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)

CommitFailedException = errors.CommitRefusedError
CommitStateUnknownException = errors.CommitStateUnknownError
NoSuchIcebergTableError = errors.NotAnIcebergTableError
NoSuchIdentifierError = errors.NotFoundError
NoSuchPropertyException = errors.ConfigurationError
NotInstalledError = errors.MissingDependencyError
ResolveError = errors.InvalidSchemaChangeError
ServiceUnavailableError = errors.MetastoreUnavailableError
UnauthorizedError = errors.MetastoreAuthenticationError
ValidationError = errors.InvalidInputError
ValidationException = errors.CommitConflictError
WaitingForLockException = errors.LockError

__all__ = [
    "CommitFailedException",
    "CommitStateUnknownException",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NoSuchIcebergTableError",
    "NoSuchIdentifierError",
    "NoSuchNamespaceError",
    "NoSuchPropertyException",
    "NoSuchTableError",
    "NoSuchViewError",
    "NotInstalledError",
    "ResolveError",
    "ServiceUnavailableError",
    "TableAlreadyExistsError",
    "UnauthorizedError",
    "ValidationError",
    "ValidationException",
    "ViewAlreadyExistsError",
    "WaitingForLockException",
]
