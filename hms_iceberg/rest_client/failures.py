"""What a server's error is on this side. Source: Iceberg's REST protocol, `ErrorModel`."""

from __future__ import annotations

import json
from contextlib import suppress

from hms_iceberg.errors import (
    AlreadyExistsError,
    CommitFailedError,
    CommitStateUnknownError,
    IcebergError,
    InvalidInputError,
    MetastoreAuthenticationError,
    MetastoreError,
    MetastoreUnavailableError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    StorageDeniedError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)

_BY_TYPE: dict[str, type[IcebergError]] = {
    "NoSuchNamespaceException": NoSuchNamespaceError,
    "NoSuchTableException": NoSuchTableError,
    "NoSuchViewException": NoSuchViewError,
    "NotFoundException": MissingFileError,
    "NamespaceNotEmptyException": NamespaceNotEmptyError,
    "CommitFailedException": CommitFailedError,
    "CommitStateUnknownException": CommitStateUnknownError,
    "UnsupportedOperationException": UnsupportedError,
    "ForbiddenException": StorageDeniedError,
}
_BY_STATUS: dict[int, type[IcebergError]] = {
    400: InvalidInputError,
    401: MetastoreAuthenticationError,
    403: MetastoreAuthenticationError,
    404: NoSuchTableError,
    406: UnsupportedError,
    409: CommitFailedError,
    413: InvalidInputError,
    419: MetastoreAuthenticationError,
    422: InvalidInputError,
    503: MetastoreUnavailableError,
}
UNKNOWN = frozenset({500, 502, 504})
"""Statuses after which nobody knows what became of a commit."""


def failure(status: int, body: bytes, what: str) -> IcebergError:
    """The error that an answer stands for.

    Args:
        status: of the answer.
        body: of the answer.
        what: what was asked: `namespace`, `table`, `view`, or `commit`.
    """
    kind, message = "", ""
    with suppress(ValueError, AttributeError, TypeError):
        error = json.loads(body)["error"]
        kind, message = str(error.get("type") or ""), str(error.get("message") or "")
    message = message or f"The server answered with status {status}: {body[:200].decode('utf-8', 'replace')}"
    if what == "commit" and status in UNKNOWN:
        return CommitStateUnknownError(message)
    if status == 409 and (kind == "AlreadyExistsException" or what == "namespace"):
        return _taken(what, message) if kind != "NamespaceNotEmptyException" else NamespaceNotEmptyError(message)
    if status in (401, 419):
        return MetastoreAuthenticationError(message)
    return (_BY_TYPE.get(kind) or _BY_STATUS.get(status, MetastoreError))(message)


def _taken(what: str, message: str) -> AlreadyExistsError:
    if what == "namespace":
        return NamespaceAlreadyExistsError(message)
    return ViewAlreadyExistsError(message) if what == "view" else TableAlreadyExistsError(message)
