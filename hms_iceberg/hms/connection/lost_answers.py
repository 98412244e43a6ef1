"""What became of a change whose answer was lost: one look at the metastore, and never a claim that nobody can make."""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import IcebergError, MetastoreAnswerLostError


def ensure_made(lost: MetastoreAnswerLostError, what: str, is_made: Callable[[], bool]) -> None:
    """Returns if a look says that the change was made after all.

    Args:
        lost: how its answer was lost.
        what: the change, such as `drop of table db.t`.
        is_made: looks.

    Raises:
        MetastoreAnswerLostError: it was not made (yet), or the metastore does not answer: nobody knows.
    """
    why: IcebergError = lost
    try:
        if is_made():
            return
    except IcebergError as error:
        why = error
    raise MetastoreAnswerLostError(
        f"Cannot tell whether the {what} was made: {lost} Look for yourself before you repeat it."
    ) from why
