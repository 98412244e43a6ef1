"""The newest whole version of a table's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.metadata_files import read_version

_NUMBER = re.compile(r"^v?(\d+)\b")
_PREVIOUS = "previous_metadata_location"


def current_version(pointer: TablePointer, storage: Storage) -> tuple[MetadataVersion | None, str]:
    """The version that the metastore names, or why it is not one of this table.

    Raises:
        StorageError: the storage does not let the file be read, which says nothing about the file.
    """
    location = pointer.metadata_location
    try:
        version = read_version(location, storage)
    except MissingFileError:
        return None, f"The metadata file {location} is not there."
    except CorruptMetadataError as error:
        return None, f"The metadata file {location} is damaged: {error}"
    wanted = pointer.properties.get("uuid")
    if wanted and version.metadata.table_uuid not in (None, wanted):
        found = version.metadata.table_uuid
        return None, f"The metadata file {location} is of another table: its UUID is {found}, that of the row {wanted}."
    return version, ""


def newest_whole_version(pointer: TablePointer, storage: Storage) -> MetadataVersion | None:
    """The newest version of the table that can be read, among the file before the lost one and those of its folder.

    None if there is none, or if two files could be it: one of them was never committed.
    """
    for candidates in _candidates(pointer, storage):
        found = [version for location in candidates if (version := _version_of(pointer, location, storage)) is not None]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _version_of(pointer: TablePointer, location: str, storage: Storage) -> MetadataVersion | None:
    wanted = pointer.properties.get("uuid")
    try:
        version = read_version(location, storage)
    except (MissingFileError, CorruptMetadataError):
        return None
    return version if not wanted or version.metadata.table_uuid in (None, wanted) else None


def _candidates(pointer: TablePointer, storage: Storage) -> Iterator[list[str]]:
    """Locations of older versions by their number, the newest first. A newer one than the lost was never committed."""
    location = pointer.metadata_location
    folder, _, name = location.rpartition("/")
    lost = _number(name)
    previous = pointer.properties.get(_PREVIOUS)
    if previous and previous != location:
        yield [previous]
    by_number: dict[int, list[str]] = {}
    for file in storage.list(folder):
        if file.location.endswith(".metadata.json") and file.location not in (location, previous):
            by_number.setdefault(_number(file.location.rpartition("/")[2]), []).append(file.location)
    yield from (by_number[number] for number in sorted(by_number, reverse=True) if lost < 0 or number < lost)


def _number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[1]) if match else -1


def told(version: MetadataVersion) -> str:
    """A version in words."""
    snapshot = version.metadata.current_snapshot()
    current = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
    return f"{version.location} of {format_milliseconds(version.metadata.last_updated_ms)} with {current}"


def lost_snapshots(version: MetadataVersion, pointer: TablePointer) -> str:
    """What is lost with the versions after this one, as far as the metastore's row tells."""
    current = pointer.properties.get("current-snapshot-id")
    known = {str(snapshot.snapshot_id) for snapshot in version.metadata.snapshots}
    if current is None:
        return "every change of the table after that version"
    if current in known:
        return "changes of the table after that version which made no snapshot, such as of properties or columns"
    return f"every change of the table after that version, snapshot {current} among them"
