"""Answers of the metastore: typed errors for refusals, and changes whose answer was lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from hms_iceberg.errors import (
    IcebergError,
    InvalidInputError,
    MetastoreAnswerLostError,
    MetastoreError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.connection.thrift_types import TApplicationException, TException, ttypes

logger = logging.getLogger(__name__)

# Seconds before each look; a server that lost a connection is over with its request by the last.
_LOOKS = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)
_LATE_SECONDS = 30.0


def ensure_made(lost: MetastoreAnswerLostError, what: str, is_made: Callable[[], bool]) -> None:
    """Returns if `is_made` shows that the change `what` (such as `drop of table db.t`) was made after all; else
    raises `lost`, or an error like it."""
    why: IcebergError = lost
    try:
        if is_made():
            return
    except IcebergError as error:
        why = error
    raise MetastoreAnswerLostError(
        f"Cannot tell whether the {what} was made: {lost} Look for yourself before you repeat it."
    ) from why


def is_unknown_method(error: BaseException) -> bool:
    """Whether the metastore does not have the call, as it is older."""
    cause = error.__cause__
    return isinstance(cause, TApplicationException) and cause.type == TApplicationException.UNKNOWN_METHOD


def typed_error(error: TException, method: str, subject: str, server: str) -> IcebergError:
    """The metastore's refusal of a call as an error of this package, which names the subject (such as ``table
    db.t``) and the remedy."""
    said = getattr(error, "message", None) or str(error) or type(error).__name__
    of_namespace = subject.startswith("namespace ")
    if isinstance(error, ttypes.NoSuchObjectException | ttypes.UnknownDBException | ttypes.UnknownTableException):
        if of_namespace or isinstance(error, ttypes.UnknownDBException):
            return NoSuchNamespaceError(f"The {subject} does not exist in the metastore at {server}. Check its name.")
        return NoSuchTableError(f"The {subject} does not exist in the metastore at {server}. Check its name.")
    if isinstance(error, ttypes.AlreadyExistsException):
        if of_namespace:
            return NamespaceAlreadyExistsError(f"The {subject} exists already in the metastore at {server}.")
        return TableAlreadyExistsError(f"The {subject} exists already in the metastore at {server}.")
    if isinstance(error, ttypes.InvalidOperationException):
        if method == "drop_database" and "not empty" in said.lower():
            return NamespaceNotEmptyError(f"The {subject} still holds tables, and is kept. {said}")
        if method.startswith("alter_table") and ("doesn't exist" in said or said.endswith("table not found")):
            return NoSuchTableError(f"The {subject} does not exist in the metastore at {server}. Check its name.")
        if method.startswith("alter_table") and "already exists" in said:
            return TableAlreadyExistsError(f"Cannot rename {subject}, the new name is taken: {said}")
    if isinstance(error, ttypes.InvalidObjectException | ttypes.InvalidOperationException) and "not a valid" in said:
        return InvalidInputError(f"The metastore at {server} takes no such name: {said}. Use letters, digits and '_'.")
    return MetastoreError(f"The metastore at {server} refused `{method}` for {subject}: {said}")


def polls(what: str, compares: bool) -> Iterator[None]:
    """Pauses between looks at the effect of a request whose answer was lost: longer if the server does not compare,
    since a late request would then undo what others commit meanwhile."""
    began = time.monotonic()
    for pause in _LOOKS:
        time.sleep(pause)
        yield
    if compares:
        return
    logger.warning("The lock on %s is kept for up to %.0f s, as a request may arrive late", what, _LATE_SECONDS)
    while time.monotonic() - began < _LATE_SECONDS:
        time.sleep(_LOOKS[-1])
        yield
