"""The note beside files that were given back to Hive, and the names of their partitions.

It is written before the first file is copied and goes with the metadata once the Hive table has its name back. Until
then, the next way back of the same version goes on where this one stopped; whoever else finds it takes everything away
that it names.

Source: Apache Hive, `FileUtils.escapePathName` and `makePartName`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hms_iceberg.errors import MigrationError, MissingFileError, UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.migration.hive.source_columns import HIVE_NULL
from hms_iceberg.spec.data_types import BinaryType, FixedType, NestedField, TimestampType, TimestamptzType
from hms_iceberg.spec.partition_transforms import IdentityTransform
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed.ways_back import MIGRATION_JOURNALS

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}


def hive_values(keys: Sequence[NestedField], stored: Sequence[Any]) -> tuple[str, ...]:
    """The values of a partition as text in Hive's form.

    Args:
        keys: the partition columns.
        stored: the values as Iceberg has them.

    Raises:
        UnsupportedError: Hive has no text for one of them.
    """
    return tuple(_text(key, value) for key, value in zip(keys, stored, strict=True))


def _text(key: NestedField, value: Any) -> str:
    if value is None:
        return HIVE_NULL
    if value == "" or isinstance(key.field_type, (BinaryType, FixedType)):
        raise UnsupportedError(f"Hive has no partition {key.name}={value!r}.")
    text = IdentityTransform().to_human_string(key.field_type, value)
    return text.replace("T", " ") if isinstance(key.field_type, (TimestampType, TimestamptzType)) else text


def hive_folder(table: HiveTable, values: Sequence[str]) -> str:
    """The folder of a partition below its table's: `month=1/day=2`.

    Args:
        table: the Hive table.
        values: the partition's values as Hive's text.
    """
    names = (key.name for key in table.partition_keys)
    return "/".join(f"{_escaped(name)}={_escaped(value)}" for name, value in zip(names, values, strict=True))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


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
    """Writes the note; only one can be there.

    Args:
        storage: where the files are.
        folder: the folder of the Iceberg table's metadata.
        note: the note.
    """
    storage.create(note_location(folder), json.dumps(asdict(note)).encode())


def read_note(storage: Storage, folder: str) -> GivenNote | None:
    """Reads the note in a metadata folder.

    Args:
        storage: where the files are.
        folder: the folder of the Iceberg table's metadata.

    Returns:
        the note; None if there is none.

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
