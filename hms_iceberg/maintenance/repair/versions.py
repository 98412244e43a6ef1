"""The newest whole version of a table's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.maintenance.check.findings import check_owner
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.storage import Storage, one_spelling
from hms_iceberg.table.needed.named_files import path_of
from hms_iceberg.transaction.workspace import read_version

_NUMBER = re.compile(r"^v?(\d+)\b")
_PREVIOUS = "previous_metadata_location"


def current_version(pointer: TablePointer, storage: Storage) -> tuple[MetadataVersion | None, str]:
    """Reads the version that the metastore names.

    Args:
        pointer: what the metastore's row says.
        storage: where the files are.

    Returns:
        the version and no text; or None and why it is not one of this table, as a sentence.

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
    other = check_owner(version, pointer)
    return (version, "") if other is None else (None, str(other))


def newest_whole_version(pointer: TablePointer, storage: Storage) -> MetadataVersion | None:
    """The newest version of a table whose metadata can be read.

    Args:
        pointer: what the metastore's row says. If it names a damaged version, only versions before that one count.
        storage: where the metadata files are.

    Returns:
        None if there is no such version, or if two files could be it, one of which was never committed.
    """
    for candidates in _candidates(pointer, storage):
        found = [version for location in candidates if (version := _version_of(pointer, location, storage)) is not None]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _version_of(pointer: TablePointer, location: str, storage: Storage) -> MetadataVersion | None:
    try:
        version = read_version(location, storage)
    except (MissingFileError, CorruptMetadataError):
        return None
    return version if check_owner(version, pointer) is None else None


def _candidates(pointer: TablePointer, storage: Storage) -> Iterator[list[str]]:
    """Locations of the table's other versions by their number, the newest first.

    A newer one than a damaged file was never committed; a file elsewhere tells nothing of how far the table came.
    """
    location, previous = pointer.metadata_location, pointer.properties.get(_PREVIOUS, "")
    folder, _, name = location.rpartition("/")
    elsewhere = names_elsewhere(pointer)
    lost = -1 if elsewhere else _number(name)
    if previous not in ("", location) and not elsewhere:
        yield [previous]
    by_number: dict[int, list[str]] = {}
    folders = {one_spelling(storage, each): each for each in sorted({folder, *_own_folders(pointer)})}
    lost_one, one_before = (one_spelling(storage, each) if each else "" for each in (location, previous))
    for file in (file for each in folders.values() for file in storage.list(each)):
        spelled = one_spelling(storage, file.location)
        known = spelled == lost_one or (spelled == one_before and not elsewhere)
        if file.location.endswith(".metadata.json") and not known:
            by_number.setdefault(_number(file.location.rpartition("/")[2]), []).append(file.location)
    yield from (by_number[number] for number in sorted(by_number, reverse=True) if lost < 0 or number < lost)


def names_elsewhere(pointer: TablePointer) -> bool:
    """Whether the row names a metadata file outside of the table's own folders, so far as it says which these are."""
    own = {path_of(folder) for folder in _own_folders(pointer)}
    return bool(own) and path_of(pointer.metadata_location.rpartition("/")[0]) not in own


def _own_folders(pointer: TablePointer) -> set[str]:
    previous = pointer.properties.get(_PREVIOUS, "").rpartition("/")[0]
    usual = f"{pointer.location.rstrip('/')}/metadata" if pointer.location else ""
    return {folder for folder in (previous, usual) if folder}


def _number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[1]) if match else -1


def told(version: MetadataVersion) -> str:
    """A version in words."""
    snapshot = version.metadata.current_snapshot()
    current = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
    return f"{version.location} of {format_milliseconds(version.metadata.last_updated_ms)} with {current}"


def lost_snapshots(version: MetadataVersion, pointer: TablePointer) -> str | None:
    """Tells what is lost if the table becomes a version, as far as the metastore's row says.

    Args:
        version: the version of the table.
        pointer: what the metastore's row says.

    Returns:
        part of a sentence; None if nothing is lost.
    """
    current = pointer.properties.get("current-snapshot-id")
    if names_elsewhere(pointer):
        if current is not None and current == str(version.metadata.current_snapshot_id):
            return None
        return "every change of the table after that version, if there was one: the row does not tell"
    if current is None:
        return "every change of the table after that version"
    if current in {str(snapshot.snapshot_id) for snapshot in version.metadata.snapshots}:
        return "changes of the table after that version which made no snapshot, such as of properties or columns"
    return f"every change of the table after that version, snapshot {current} among them"
