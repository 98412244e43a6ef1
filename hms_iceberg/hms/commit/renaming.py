"""Renames a row of the metastore, and determines the outcome."""

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
from hms_iceberg.hms.connection.answers import ensure_made, polls
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
    """Gives a row another, lower-case name; with `compare` the server compares once more while it alters.

    Only a MetastoreAnswerLostError leaves the outcome unknown.
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
        if not any(_is_true(is_renamed) for _ in polls(name, compare)):
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
