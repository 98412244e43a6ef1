"""Renames a row of the metastore, and tells truly how that ended."""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import (
    CommitFailedError,
    IcebergError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.capability import MODIFIED, expectation
from hms_iceberg.hms.client import HmsClient
from hms_iceberg.hms.exclusion import Exclusion
from hms_iceberg.hms.table_rows import METADATA_LOCATION
from hms_iceberg.hms.thrift_types import ttypes
from hms_iceberg.metastore import Identifier, TablePointer


def rename_row(
    client: HmsClient,
    source: Identifier,
    target: Identifier,
    pointer_of: Callable[[ttypes.Table], TablePointer],
    exclusion: Exclusion,
    compare: bool,
) -> None:
    """Gives a row another name.

    Args:
        client: the metastore.
        source, target: the names, in lower case.
        pointer_of: reads a row, and refuses one that may not be renamed.
        exclusion: keeps other writers away.
        compare: whether the server is to compare once more while it alters (see `capability`).

    Raises:
        TableAlreadyExistsError: `target` is taken.
        CommitFailedError: it was changed meanwhile.
        IcebergError: what `pointer_of` refuses, or the metastore; nothing was changed.
    """
    row = client.get_table(*source)
    pointer = pointer_of(row)
    row.dbName, row.tableName = target
    # Hive 4 sets this where it made an external table of a managed one, and then gives the row another location.
    row.parameters.pop("TRANSLATED_TO_EXTERNAL", None)
    exclusion.ensure_active()
    environment = expectation(METADATA_LOCATION, pointer.metadata_location) if compare else {}
    try:
        client.alter_table(source[0], source[1], row, environment)
    except IcebergError as error:
        renamed = _location(client, target, pointer_of) == pointer.metadata_location
        if renamed and _location(client, source, pointer_of) is None:
            return
        name = ".".join(source)
        if isinstance(error, TableAlreadyExistsError) or renamed:
            raise TableAlreadyExistsError(
                f"Cannot rename {name}: {'.'.join(target)} exists already. Choose another name."
            ) from error
        if MODIFIED in str(error):
            raise CommitFailedError(f"Cannot rename {name}: it was changed meanwhile. Try again.") from error
        raise


def _location(client: HmsClient, name: Identifier, pointer_of: Callable[[ttypes.Table], TablePointer]) -> str | None:
    try:
        return pointer_of(client.get_table(*name)).metadata_location
    except (NoSuchTableError, NoSuchViewError):
        return None
