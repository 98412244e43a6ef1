"""Which version of a table a repair goes on from: the one that its metastore names, or the newest that is whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.maintenance.check.findings import check_owner
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.storage import Places, Storage
from hms_iceberg.transaction.workspace import read_version

_NUMBER = re.compile(r"^v?(\d+)\b")
_PREVIOUS, _CURRENT = "previous_metadata_location", "current-snapshot-id"
_ENDINGS = (".metadata.json", ".metadata.json.gz")


def current_version(pointer: TablePointer, storage: Storage) -> tuple[MetadataVersion | None, str]:
    """The version that the metastore names and no text, or None and why it is not one of this table, as a sentence."""
    location = pointer.metadata_location
    try:
        version = read_version(location, storage)
    except MissingFileError:
        return None, f"The metadata file {location} is not there."
    except CorruptMetadataError as error:
        return None, f"The metadata file {location} is damaged: {error}"
    other = check_owner(version, pointer, storage)
    return (version, "") if other is None else (None, str(other))


def newest_whole_version(pointer: TablePointer, storage: Storage) -> MetadataVersion | None:
    """The newest version whose metadata can be read, before the one that the metastore names if that is damaged. None
    also if two files could be it, one of which was never committed: if one is damaged, the other may be that one."""
    for candidates in _candidates(pointer, storage):
        found = [version for location in candidates if (version := _version_of(pointer, location, storage)) is not None]
        if found:
            return found[0] if len(candidates) == 1 else None
    return None


def version_after(version: MetadataVersion, pointer: TablePointer, storage: Storage) -> MetadataVersion | None:
    """The newest version that the metastore's row tells of by its snapshot, if it comes after the one that it names."""
    current = pointer.properties.get(_CURRENT)
    if current is None or current in map(str, version.snapshot_ids):
        return None
    by_number = _by_number(pointer, storage)
    for number in sorted(by_number, reverse=True):
        for location in by_number[number]:
            later = _version_of(pointer, location, storage)
            if later is not None and str(later.metadata.current_snapshot_id) == current and goes_on(version, later):
                return later
    return None


def goes_on(older: MetadataVersion, newer: MetadataVersion) -> bool:
    """Whether a version came of another one: it names it in its log, and its snapshot in its history."""
    if older.uuid != newer.uuid or older.location.rpartition("/")[2] not in {
        each.rpartition("/")[2] for each in newer.previous
    }:
        return False
    history = {each.snapshot_id for each in newer.metadata.ancestors_of(newer.metadata.current_snapshot_id)}
    return older.metadata.current_snapshot_id is None or older.metadata.current_snapshot_id in history


def _version_of(pointer: TablePointer, location: str, storage: Storage) -> MetadataVersion | None:
    try:
        version = read_version(location, storage)
    except (MissingFileError, CorruptMetadataError):
        return None
    return version if check_owner(version, pointer, storage) is None else None


def _candidates(pointer: TablePointer, storage: Storage) -> Iterator[list[str]]:
    """Locations of the table's other versions by their number, the newest first. A newer one than a damaged file was
    never committed; a file elsewhere tells nothing of how far the table came."""
    location, previous = pointer.metadata_location, pointer.properties.get(_PREVIOUS, "")
    elsewhere = names_elsewhere(pointer, Places(storage))
    lost = -1 if elsewhere else _number(location.rpartition("/")[2])
    if previous not in ("", location) and not elsewhere:
        yield [previous]
    by_number = _by_number(pointer, storage)
    yield from (by_number[number] for number in sorted(by_number, reverse=True) if lost < 0 or number < lost)


def _by_number(pointer: TablePointer, storage: Storage) -> dict[int, list[str]]:
    """The metadata files in the table's folders, without the one that the row names, by their number."""
    folder = pointer.metadata_location.rpartition("/")[0]
    places = Places(storage)
    folders = {places.of(each): each for each in sorted({folder, *_own_folders(pointer)})}
    named, found = places.of(pointer.metadata_location), dict[int, list[str]]()
    for file in (file for each in folders.values() for file in storage.list(each)):
        if file.location.endswith(_ENDINGS) and places.of(file.location) != named:
            found.setdefault(_number(file.location.rpartition("/")[2]), []).append(file.location)
    return found


def names_elsewhere(pointer: TablePointer, places: Places) -> bool:
    """Whether the row names a metadata file outside of the table's own folders, so far as it says which these are."""
    own = {places.anywhere(folder) for folder in _own_folders(pointer)}
    return bool(own) and places.anywhere(pointer.metadata_location).parent not in own


def _own_folders(pointer: TablePointer) -> set[str]:
    previous = pointer.properties.get(_PREVIOUS, "").rpartition("/")[0]
    usual = f"{pointer.location.rstrip('/')}/metadata" if pointer.location else ""
    return {folder for folder in (previous, usual) if folder}


def _number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[1]) if match else -1


def in_words(version: MetadataVersion) -> str:
    """A version in words."""
    snapshot = version.metadata.current_snapshot()
    current = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
    return f"{version.location} of {format_milliseconds(version.metadata.last_updated_ms)} with {current}"


def lost_snapshots(version: MetadataVersion, pointer: TablePointer, places: Places) -> str | None:
    """Part of a sentence: what is lost if the table becomes a version, as far as the row says; None for nothing."""
    current = pointer.properties.get(_CURRENT)
    if names_elsewhere(pointer, places):
        if current is not None and current == str(version.metadata.current_snapshot_id):
            return None
        return "every change of the table after that version, if there was one: the row does not tell"
    if current is None:
        return "every change of the table after that version"
    if current in {str(snapshot.snapshot_id) for snapshot in version.metadata.snapshots}:
        return "changes of the table after that version which made no snapshot, such as of properties or columns"
    return f"every change of the table after that version, snapshot {current} among them"
