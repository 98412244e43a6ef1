"""The note of what a Hive table is being given, beside the Iceberg table's metadata.

It is written before the first file is copied and goes with the metadata once the Hive table has its name back. Until
then, the next way back of the same version goes on where this one stopped; whoever else finds it takes everything away
that it names.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hms_iceberg.errors import MigrationError, MissingFileError
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed.ways_back import MIGRATION_JOURNALS

NOTE_NAME = f"{MIGRATION_JOURNALS}as-hive.json"


@dataclass(frozen=True)
class GivenNote:
    """The files and partitions that a Hive table is being given.

    Attributes:
        version: location of the Iceberg table's metadata that it was found out from.
        files: where the copies are.
        partitions: values and folder of each partition that Hive did not have.
    """

    version: str
    files: tuple[str, ...]
    partitions: tuple[tuple[tuple[str, ...], str], ...]


def note_location(folder: str) -> str:
    """Where the note lies in a metadata folder."""
    return f"{folder}/{NOTE_NAME}"


def write_note(storage: Storage, folder: str, note: GivenNote) -> None:
    """Write the note; only one can be there."""
    storage.create(note_location(folder), json.dumps(asdict(note)).encode())


def read_note(storage: Storage, folder: str) -> GivenNote | None:
    """The note in a metadata folder; None if there is none.

    Raises:
        MigrationError: the note cannot be read.
    """
    location = note_location(folder)
    try:
        found = json.loads(storage.read(location))
        partitions = tuple((tuple(values), place) for values, place in found["partitions"])
        return GivenNote(found["version"], tuple(found["files"]), partitions)
    except MissingFileError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise MigrationError(
            f"Cannot read {location}: {error}. It names files that were copied for the Hive table; nothing was changed."
        ) from error
