"""Renames a row of the metastore, and tells truly how that ended."""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import (
    CommitFailedError,
    IcebergError,
    MetastoreAnswerLostError,
    MetastoreUnavailableError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.capability import MODIFIED, expectation
from hms_iceberg.hms.commit.pointer_swap import Guard
from hms_iceberg.hms.connection.answers import ensure_made, looks
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import METADATA_LOCATION
from hms_iceberg.metastore import Identifier, TablePointer


def rename_row(
    client: HmsClient,
    source: Identifier,
    target: Identifier,
    pointer_of: Callable[[ttypes.Table], TablePointer],
    guard: Guard,
    compare: bool,
) -> None:
    """Gives a row another name.

    Args:
        client: the metastore.
        source, target: the names, in lower case.
        pointer_of: reads a row, and refuses one that may not be renamed.
        guard: keeps other writers away.
        compare: whether the server is to compare once more while it alters (see `capability`).

    Raises:
        TableAlreadyExistsError: `target` is taken.
        CommitFailedError: it was changed meanwhile.
        MetastoreAnswerLostError: nobody can tell whether it was renamed.
        IcebergError: what `pointer_of` refuses, or the metastore; nothing was changed.
    """
    row = client.get_table(*source)
    pointer = pointer_of(row)
    row.dbName, row.tableName = target
    # Hive 4 sets this if it made an external table of a managed one, and then gives the row another location.
    row.parameters.pop("TRANSLATED_TO_EXTERNAL", None)
    name, new_name = ".".join(source), ".".join(target)

    def is_at(place: Identifier) -> bool:
        return _location(client, place, pointer_of) == pointer.metadata_location

    def is_renamed() -> bool:
        return is_at(target) and _location(client, source, pointer_of) is None

    guard.ensure_active()
    environment = expectation(METADATA_LOCATION, pointer.metadata_location) if compare else {}
    try:
        client.alter_table(source[0], source[1], row, environment)
    except MetastoreAnswerLostError as error:
        if not any(_is_true(is_renamed) for _ in looks(name, compare)):
            ensure_made(error, f"rename of {name} to {new_name}", is_renamed)
    except MetastoreUnavailableError:
        raise  # nothing was sent
    except IcebergError as error:
        if is_renamed():
            return
        if isinstance(error, TableAlreadyExistsError) or is_at(target):
            raise TableAlreadyExistsError(
                f"Cannot rename {name}: {new_name} exists already. Choose another name."
            ) from error
        if MODIFIED in str(error):
            raise CommitFailedError(f"Cannot rename {name}: it was changed meanwhile. Try again.") from error
        raise


def _is_true(look: Callable[[], bool]) -> bool:
    """The result of a check; False if it fails."""
    try:
        return look()
    except IcebergError:
        return False


def _location(client: HmsClient, name: Identifier, pointer_of: Callable[[ttypes.Table], TablePointer]) -> str | None:
    try:
        return pointer_of(client.get_table(*name)).metadata_location
    except (NoSuchTableError, NoSuchViewError):
        return None
