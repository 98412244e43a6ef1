"""Deleting every file of a table that was dropped."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping

from hms_iceberg.storage import Storage, TellsRights
from hms_iceberg.table.needed.named_files import delete_files

logger = logging.getLogger(__name__)

_MOST_ASKED = 1000


def check_right_to_purge(metadata_location: str, storage: Storage) -> None:
    """Finds out, with a file of no bytes beside the metadata, whether a table's files could be deleted.

    Args:
        metadata_location: the table's metadata file.
        storage: where the files are.

    Raises:
        StorageDeniedError: this user lacks the right.
    """
    probe = f"{metadata_location.rpartition('/')[0]}/.purge-{uuid.uuid4().hex[:12]}"
    storage.create(probe, b"")
    storage.delete(probe)


def check_rights_to_delete(files: Iterable[str], storage: Storage, kept: Mapping[str, str]) -> None:
    """Finds out whether this user may delete files that may be of others, in folders with the sticky bit.

    Args:
        files: of the table; of very many a spread is asked for.
        storage: where they are.
        kept: those that stay.

    Raises:
        StorageDeniedError: this user lacks the right.
    """
    if isinstance(storage, TellsRights):
        doomed = [location for location in files if location not in kept]
        for location in doomed[:: 1 + len(doomed) // _MOST_ASKED]:
            storage.check_right_to_delete(location)


def purge_files(files: Iterable[str], storage: Storage, name: str, kept: Mapping[str, str]) -> int:
    """Deletes files of a table that was dropped.

    Args:
        files: in the order in which they go; the metadata file last, so that a purge that was interrupted can be
            repeated from it.
        storage: where they are.
        name: the table.
        kept: those that stay, each with who needs it.

    Returns the number of files deleted; what stays, or cannot be deleted, is logged.

    Returns:
        how many files were deleted; what stays, or cannot be deleted, is logged.
    """
    for who, count in Counter(kept.values()).items():
        logger.warning("Dropped table %s, and left %d of its files, which %s needs", name, count, who)
    doomed = [location for location in files if location not in kept]
    return len(doomed) - len(delete_files(storage, doomed, name, workers=1))


def log_unreadable(error: Exception) -> None:
    """Logs a file that cannot be read; the files that it names stay."""
    logger.warning("Could not list files of a table: %s", error)
