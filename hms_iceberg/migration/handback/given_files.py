"""Gives a Hive table the files that it lacks, and takes them away again if the way back does not come to its end."""

from __future__ import annotations

import logging

from hms_iceberg.errors import MigrationError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.migration.handback.given_note import note_location, read_note, write_note
from hms_iceberg.migration.handback.handback_plan import FileCopy, Handback
from hms_iceberg.migration.migration_progress import Progress, in_threads
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

COPYING = "Copying files"
_THREADS = 8
_CHUNK = 8 * 1024 * 1024


def give(
    hive: HiveTables, storage: Storage, folder: str, backup: HiveTable, handback: Handback, progress: Progress
) -> None:
    """Copies the files and adds the partitions; continues an earlier attempt at the same version where it stopped.

    Args:
        hive: the metastore's rows.
        storage: where the files are.
        folder: the Iceberg table's metadata folder.
        backup: the Hive table.
        handback: what it lacks.
        progress: told how many files are copied.

    Raises:
        MigrationError: the note of an earlier attempt cannot be read.
        StorageError: a file cannot be copied; what was copied stays for the next attempt.
    """
    if read_note(storage, folder) != handback.note:
        take_away(hive, storage, folder, backup)
        write_note(storage, folder, handback.note)
    copied = in_threads(lambda copy: _copy(storage, copy), handback.copies, _THREADS)
    for done, _ in enumerate(copied, start=1):
        progress(COPYING, done, len(handback.copies))
    if handback.added:
        there = {each.values for each in hive.partitions(backup.database, backup.name)}
        missing = [each for each in handback.added if each.values not in there]
        hive.add_partitions(backup.database, backup.name, missing)
    hive.forget_statistics(backup.database, backup.name, handback.grown)


def take_away(hive: HiveTables, storage: Storage, folder: str, backup: HiveTable | None) -> None:
    """Undoes what `give` did so far.

    Args:
        hive: the metastore's rows.
        storage: where the files are.
        folder: the folder of the Iceberg table's metadata.
        backup: the Hive table; None if there is none.

    Raises:
        MigrationError: the note cannot be read.
    """
    note = read_note(storage, folder)
    if note is None:
        return
    if backup is not None:
        for values, place in note.partitions:
            hive.drop_partition(backup.database, backup.name, values, place)
    for _ in in_threads(storage.delete, note.files, _THREADS):
        pass
    storage.delete(note_location(folder))
    logger.info("Took %d copied files away from %s", len(note.files), backup)


def _copy(storage: Storage, copy: FileCopy) -> None:
    if storage.exists(copy.target):
        if storage.length(copy.target) == copy.size:
            return
        storage.delete(copy.target)
    with storage.open_input(copy.source) as source, storage.open_output(copy.target) as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
    if storage.length(copy.target) != copy.size:
        raise MigrationError(f"File {copy.source} was not copied whole to {copy.target}.")
