"""Gives a Hive table the files that it lacks, and takes them away again if the way back does not come to its end.

What will be given is noted beside the Iceberg table's metadata before the first file is copied. The note goes with the
metadata once the Hive table has its name back; until then, whoever finds it takes everything away that it names.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from hms_iceberg.errors import MigrationError, MissingFileError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.migration.handback.handback_plan import FileCopy, Handback
from hms_iceberg.migration.migration_progress import Progress, in_threads
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

COPYING = "Copying files"
NOTE_NAME = "hive-migration.as-hive.json"
_THREADS = 8
_CHUNK = 8 * 1024 * 1024


def give(
    hive: HiveTables, storage: Storage, folder: str, backup: HiveTable, handback: Handback, progress: Progress
) -> None:
    """Copy the files and add the partitions.

    Args:
        hive: the metastore's rows.
        storage: where the files are.
        folder: the Iceberg table's metadata folder.
        backup: the Hive table.
        handback: what it lacks.
        progress: told how many files are copied.
    """
    partitions = [[list(each.values), each.storage.location] for each in handback.added]
    note: dict[str, Any] = {"files": [copy.target for copy in handback.copies], "partitions": partitions}
    storage.create(f"{folder}/{NOTE_NAME}", json.dumps(note).encode())
    copied = in_threads(lambda copy: _copy(storage, copy), handback.copies, _THREADS)
    for done, _ in enumerate(copied, start=1):
        progress(COPYING, done, len(handback.copies))
    hive.add_partitions(backup.database, backup.name, handback.added)
    hive.forget_statistics(backup.database, backup.name, handback.grown)


def was_given(storage: Storage, folder: str) -> bool:
    """Whether the Hive table was given files that nobody took away; all of them, once it has its name back."""
    return storage.exists(f"{folder}/{NOTE_NAME}")


def take_away(hive: HiveTables, storage: Storage, folder: str, backup: HiveTable | None) -> None:
    """Undo what `give` did, or began to do; nothing if it did nothing.

    Raises:
        MigrationError: the note cannot be read.
    """
    location = f"{folder}/{NOTE_NAME}"
    try:
        note = json.loads(storage.read(location))
        files, partitions = note["files"], note["partitions"]
    except MissingFileError:
        return
    except (ValueError, TypeError, KeyError) as error:
        raise MigrationError(
            f"Cannot read {location}: {error}. It names files that were copied for the Hive table; nothing was changed."
        ) from error
    if backup is not None:
        for values, place in partitions:
            hive.drop_partition(backup.database, backup.name, values, place)
    _delete(storage, files)
    storage.delete(location)
    logger.info("Took %d copied files away from %s", len(files), backup)


def _copy(storage: Storage, copy: FileCopy) -> None:
    with storage.open_input(copy.source) as source, storage.open_output(copy.target) as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
    if storage.length(copy.target) != copy.size:
        raise MigrationError(f"File {copy.source} was not copied whole to {copy.target}.")


def _delete(storage: Storage, files: Sequence[str]) -> None:
    for _ in in_threads(storage.delete, files, _THREADS):
        pass
