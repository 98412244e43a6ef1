"""Deleting files of a table that nothing needs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import IcebergError, StorageError
from hms_iceberg.table.table import Table

logger = logging.getLogger(__name__)

_DELETERS = 8


def path_of(location: str) -> str:
    """What two ways to write one location have in common: `s3a://b/x` and `s3://b//x`, `file:/x` and `/x`.

    Locations of two file systems may have it in common too: then a file is kept that could go.
    """
    try:
        path = parse_location(location).path
    except StorageError:
        return location
    return re.sub("/+", "/", f"/{path}")


def delete_files(table: Table, locations: Iterable[str], workers: int = _DELETERS) -> dict[str, str]:
    """Deletes files, several at once.

    Args:
        table: whose files they are.
        locations: the files; one that is gone already counts as deleted.
        workers: how many are deleted at once.

    Returns:
        Those that could not be deleted, by location with the reason.
    """

    def delete(location: str) -> tuple[str, str | None]:
        try:
            table.storage.delete(location)
        except IcebergError as error:
            logger.warning(
                "Could not delete %s, which no snapshot of %s needs: %s", location, ".".join(table.name()), error
            )
            return location, str(error)
        return location, None

    with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-delete") as pool:
        return {location: reason for location, reason in pool.map(delete, locations) if reason is not None}
