"""Errors in the protocol's form: one table from this package's errors to HTTP status and type.

Clients act on the status. 409: a commit was lost, and may be made anew; 500, 502 and 504: the outcome is unknown; 503:
nothing was changed, and the request may be repeated as it is. Source: Iceberg's REST protocol, `ErrorModel`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg import errors


@dataclass(frozen=True)
class ErrorKind:
    """HTTP status (`code`) of an error, and its type by its name in Apache Iceberg."""

    code: int
    type: str


class RefusedError(errors.IcebergError):
    """A request that is refused before the catalog is asked: its login, its rights, its size ..."""

    def __init__(self, code: int, type_name: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.kind = ErrorKind(code, type_name)
        self.headers = headers or {}


def no_such_route(method: str, path: str) -> RefusedError:
    return RefusedError(404, "NoSuchEndpointException", f"There is no endpoint {method} {path}.")


_KIND_OF_ERRORS: tuple[tuple[type[Exception], ErrorKind], ...] = (
    # The first that fits counts: those below come before those that they are kinds of.
    (errors.NoSuchNamespaceError, ErrorKind(404, "NoSuchNamespaceException")),
    (errors.NoSuchTableError, ErrorKind(404, "NoSuchTableException")),
    (errors.NoSuchViewError, ErrorKind(404, "NoSuchViewException")),
    (errors.NotFoundError, ErrorKind(400, "ValidationException")),
    (errors.RefAlreadyExistsError, ErrorKind(400, "ValidationException")),
    (errors.AlreadyExistsError, ErrorKind(409, "AlreadyExistsException")),
    (errors.NamespaceNotEmptyError, ErrorKind(409, "NamespaceNotEmptyException")),
    (errors.CommitRefusedError, ErrorKind(409, "CommitFailedException")),
    (errors.CommitStateUnknownError, ErrorKind(500, "CommitStateUnknownException")),
    (errors.UnsupportedError, ErrorKind(406, "UnsupportedOperationException")),
    (errors.InvalidInputError, ErrorKind(400, "BadRequestException")),
    (errors.MissingDependencyError, ErrorKind(500, "RESTException")),
    (errors.ConfigurationError, ErrorKind(400, "BadRequestException")),
    (errors.KeyUnavailableError, ErrorKind(406, "UnsupportedOperationException")),  # the client may have the key
    (errors.MissingFileError, ErrorKind(404, "NotFoundException")),
    (errors.StorageDeniedError, ErrorKind(403, "ForbiddenException")),
    # Before anything is sent to the metastore: a commit with this outcome changed nothing.
    (errors.StorageError, ErrorKind(503, "ServiceUnavailableException")),
    (errors.CorruptFileError, ErrorKind(400, "ValidationException")),
    (errors.MetastoreAnswerLostError, ErrorKind(500, "ServiceFailureException")),
    (errors.MetastoreUnavailableError, ErrorKind(503, "ServiceUnavailableException")),
    (errors.LockError, ErrorKind(503, "ServiceUnavailableException")),
    (errors.MetastoreAuthenticationError, ErrorKind(503, "ServiceUnavailableException")),
    (errors.IcebergError, ErrorKind(500, "ServiceFailureException")),
)

_UNEXPECTED = ErrorKind(500, "InternalServerError")


def error_kind(error: Exception) -> ErrorKind:
    if isinstance(error, RefusedError):
        return error.kind
    return next((answer for kind, answer in _KIND_OF_ERRORS if isinstance(error, kind)), _UNEXPECTED)


def is_expected(error: Exception) -> bool:
    """Whether this package raised an error on purpose; the message of others is for the log only."""
    return isinstance(error, errors.IcebergError)
