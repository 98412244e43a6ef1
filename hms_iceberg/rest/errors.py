"""Errors in the protocol's form: one table from what this package raises to what a client is told.

Clients act on the status. 409: a commit was lost, and may be made anew; 500, 502 and 504: nobody knows what became of
it; 503: nothing was changed, and the request may be repeated as it is. Source: Iceberg's REST protocol, `ErrorModel`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg import errors


@dataclass(frozen=True)
class Told:
    """The answer for an error: HTTP status, and the type of the error by its name in Apache Iceberg."""

    status: int
    type: str


class RefusedError(errors.IcebergError):
    """A request that is refused before the catalog is asked: its login, its rights, its size ...

    Attributes:
        told: the status and the type.
        headers: of the answer.
    """

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.told = Told(status, kind)
        self.headers = headers or {}


def no_such_route(method: str, path: str) -> RefusedError:
    """The error if there is nothing at a path.

    Args:
        method: the HTTP method.
        path: the path.
    """
    return RefusedError(404, "NoSuchEndpointException", f"There is no endpoint {method} {path}.")


_TOLD: tuple[tuple[type[Exception], Told], ...] = (
    # The first that fits counts: those below come before those that they are kinds of.
    (errors.NoSuchNamespaceError, Told(404, "NoSuchNamespaceException")),
    (errors.NoSuchTableError, Told(404, "NoSuchTableException")),
    (errors.NoSuchViewError, Told(404, "NoSuchViewException")),
    (errors.NotFoundError, Told(400, "ValidationException")),
    (errors.RefAlreadyExistsError, Told(400, "ValidationException")),
    (errors.AlreadyExistsError, Told(409, "AlreadyExistsException")),
    (errors.NamespaceNotEmptyError, Told(409, "NamespaceNotEmptyException")),
    (errors.CommitRefusedError, Told(409, "CommitFailedException")),
    (errors.CommitStateUnknownError, Told(500, "CommitStateUnknownException")),
    (errors.UnsupportedError, Told(406, "UnsupportedOperationException")),
    (errors.InvalidInputError, Told(400, "BadRequestException")),
    (errors.MissingDependencyError, Told(500, "RESTException")),
    (errors.ConfigurationError, Told(400, "BadRequestException")),
    (errors.KeyUnavailableError, Told(406, "UnsupportedOperationException")),  # the client may have the key
    (errors.MissingFileError, Told(404, "NotFoundException")),
    (errors.StorageDeniedError, Told(403, "ForbiddenException")),
    # Before anything is sent to the metastore: a commit with this outcome changed nothing.
    (errors.StorageError, Told(503, "ServiceUnavailableException")),
    (errors.CorruptFileError, Told(400, "ValidationException")),
    (errors.MetastoreAnswerLostError, Told(500, "ServiceFailureException")),
    (errors.MetastoreUnavailableError, Told(503, "ServiceUnavailableException")),
    (errors.LockError, Told(503, "ServiceUnavailableException")),
    (errors.MetastoreAuthenticationError, Told(503, "ServiceUnavailableException")),
    (errors.IcebergError, Told(500, "ServiceFailureException")),
)

_UNEXPECTED = Told(500, "InternalServerError")


def told(error: Exception) -> Told:
    """The answer for an error: HTTP status and error type."""
    if isinstance(error, RefusedError):
        return error.told
    return next((answer for kind, answer in _TOLD if isinstance(error, kind)), _UNEXPECTED)


def is_expected(error: Exception) -> bool:
    """Whether an error is one that this package raises on purpose; the message of others is for the log only."""
    return isinstance(error, errors.IcebergError)
