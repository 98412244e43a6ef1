"""Deleting files that nothing needs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import IcebergError, StorageError
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

_DELETERS = 8
# Files that one of them takes at a time: to hand over each costs more than to delete it on a local disk.
_AT_ONCE = 100


def path_of(location: str) -> str:
    """One form for all spellings of a location: `s3a://b/x` and `s3://b//x`, `file:/x` and `/x`.

    Locations of two file systems may have it in common too: then a file is kept that could go.
    """
    try:
        path = parse_location(location).path
    except StorageError:
        return location
    path = path if path.startswith("/") else f"/{path}"
    return re.sub("/+", "/", path) if "//" in path else path


def delete_files(storage: Storage, locations: Iterable[str], name: str, workers: int = _DELETERS) -> dict[str, str]:
    """Deletes files, several at once.

    Args:
        storage: where they are.
        locations: the files; one that is gone already counts as deleted.
        name: the table whose files they are, for messages.
        workers: how many are deleted at once.

    Returns:
        Those that could not be deleted, by location with the reason.
    """

    def delete(part: Sequence[str]) -> dict[str, str]:
        left = {}
        for location in part:
            try:
                storage.delete(location)
            except IcebergError as error:
                logger.warning("Could not delete %s, which %s does not need: %s", location, name, error)
                left[location] = str(error)
        return left

    every = list(locations)
    size = min(_AT_ONCE, max(1, len(every) // (2 * workers)))  # of few files each gets some
    parts = [every[start : start + size] for start in range(0, len(every), size)]
    with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-delete") as pool:
        return {location: reason for left in pool.map(delete, parts) for location, reason in left.items()}
