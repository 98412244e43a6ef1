"""Which files that a table names, and is about to delete, others need: its way back, copies of it, and tables whose
folders they are in.

Ways back are journals beside a table's metadata, and the Hive table before a migration. Journals have hidden names, so
that other engines do not take them for orphans either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from hms_iceberg.errors import MissingFileError, NoSuchTableError
from hms_iceberg.metastore import Identifier, ListsEverything, MetadataVersion, Metastore, TableRow, TableRows
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.places import Place
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.needed_files.named_files import (
    METADATA_LOCATION,
    OwnFolders,
    files_of,
    folders_of_row,
    is_in_any,
)
from hms_iceberg.table.needed_files.remembered_rows import asked_once
from hms_iceberg.transaction.intents import is_intent
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES = 2
MIGRATION_JOURNALS = "_hive-migration."
"""What names of a migration's journal and notes begin with."""
REPAIR_JOURNALS = "_repair-"
"""What names of a repair's journals begin with."""
ERASURE_JOURNALS = "_erasure-"
"""What names of an erasure's journals begin with."""
MIGRATION_ID = "hms_iceberg.migration-id"
"""The mark of a migration, in the properties of the Iceberg table and in the row of the Hive table."""


def is_journal(location: str) -> bool:
    """Whether a file is a journal, which is kept as long as its table is."""
    name = location.rpartition("/")[2]
    known = (MIGRATION_JOURNALS[1:], REPAIR_JOURNALS[1:], ERASURE_JOURNALS[1:])
    return is_intent(location) or name.removeprefix("_").startswith(known)


def default_backup_name(table: str) -> str:
    """The name of the Hive table after a migration, as Iceberg's own migration has it."""
    return f"{table}_backup_"


def everything_in(metastore: Metastore) -> ListsEverything | None:
    """The interface to all names of a metastore; None if it lists only Iceberg's."""
    rows = getattr(metastore, "table_rows", None)
    return rows if isinstance(rows, ListsEverything) else None


def table_rows_of(metastore: Metastore) -> TableRows | None:
    """The interface to all rows of a metastore; None if it gives only single tables."""
    return getattr(metastore, "table_rows", None)


@dataclass(frozen=True)
class HiveFolders:
    """Folders of a Hive table's files, which may hold an Iceberg table's folders too."""

    name: str  # the Hive table
    folders: frozenset[Place]  # its partitions' or its own, on whatever server (see `Place.anywhere`)
    own: OwnFolders  # the Iceberg table's own folders

    def needs(self, place: Place) -> bool:
        """Whether the Hive table reads a file (a place on whatever server): not what is hidden or Iceberg's own."""
        below = place.name
        for folder in place.parent.upwards():
            if below.startswith(("_", ".")):
                return False
            if folder in self.folders:
                inside = (own for own in self.own.all() if own != folder and own.is_in(folder))
                return not is_in_any(place, inside)
            below = folder.name
        return False


def hive_folders(row: TableRow, own: OwnFolders, rows: TableRows, places: Places) -> HiveFolders:
    """The folders with files of a Hive table; `own` are those of an Iceberg table that may be in them."""
    folders: Iterable[str] = rows.partition_locations(row.identifier) if row.has_partitions else (row.location,)
    return HiveFolders(str(row), frozenset(places.anywhere(each) for each in folders), own)


def backup_of(
    identifier: Identifier, metadata: TableMetadata, metadata_location: str, rows: TableRows, places: Places
) -> HiveFolders | None:
    """The Hive table that a migrated table was, while it is kept as the way back; None if there is none. It is known by
    the mark of the migration in its row, or (of a migration by Apache Iceberg) by its name and place."""
    own = OwnFolders.of(metadata, metadata_location, places)
    return looked_for(lambda: _backup_of(identifier, metadata, own, rows, places))


def looked_for(look: Callable[[], T]) -> T:
    """The result of a search in a metastore's rows; the search is repeated if a table is renamed during it."""
    for _ in range(_TRIES):
        try:
            return look()
        except NoSuchTableError as error:
            logger.info("The metastore's tables are looked at again: %s", error)
    return look()


def _backup_of(
    identifier: Identifier, metadata: TableMetadata, own: OwnFolders, rows: TableRows, places: Places
) -> HiveFolders | None:
    row = rows.row((*identifier[:-1], default_backup_name(identifier[-1])))
    mark = metadata.properties.get(MIGRATION_ID)
    if row is None or row.is_iceberg or not (_is_marked(row, mark) or places.anywhere(row.location) == own.location):
        same = () if mark is None else rows.rows()
        row = next((each for each in same if not each.is_iceberg and _is_marked(each, mark)), None)
    return None if row is None else hive_folders(row, own, rows, places)


def _is_marked(row: TableRow, mark: str | None) -> bool:
    return mark is not None and row.properties.get(MIGRATION_ID) == mark


# -------------------------------------------------------------------------------------------------------- others


_ASKED_AT_ONCE = 8


def needed_by_others(
    identifier: Identifier,
    version: MetadataVersion,
    locations: Iterable[str],
    storage: Storage,
    rows: TableRows | None,
    *,
    keep_backup: bool = True,
) -> dict[str, str]:
    """Files of a table that others need, each with who does as part of a sentence: its Hive backup, tables registered
    from its metadata, and the owner of the deepest folder around a file; two Iceberg tables of one folder share what
    both name. Without `rows` no other is known."""
    places = Places(storage)
    asked: dict[Place, list[str]] = {}
    for location in locations:
        asked.setdefault(places.anywhere(location), []).append(location)
    if rows is None or not asked:
        return {}
    rows = asked_once(rows)
    found: dict[Place, str] = {}
    backup = backup_of(identifier, version.metadata, version.location, rows, places)
    if backup is not None and keep_backup:
        who = f"the Hive table {backup.name}, its way back from the migration"
        found = {place: who for place in asked if backup.needs(place)}
    own = OwnFolders.of(version.metadata, version.location, places)
    names = {".".join(identifier).lower(), "" if backup is None else backup.name.lower()}
    owners = looked_for(lambda: Owners(asked, own.all(), names, rows, places))
    copies = {row.identifier: row for row in copies_of(version, rows, places)}
    for row in (*copies.values(), *(each for each in owners.sharers if each.identifier not in copies)):
        if str(row).lower() not in names:
            how = "a copy" if row.identifier in copies else "which has a folder with it"
            for location in names_of(row, storage):
                if (place := places.anywhere(location)) in asked:
                    found[place] = f"table {row}, {how}"
    for place in asked:
        if place not in found and (who_owns := owners.of(place)) is not None:
            found[place] = f"table {who_owns} (they are in its folder)"
    return {location: who for place, who in found.items() for location in asked[place]}


def files_of_others(
    identifier: Identifier, version: MetadataVersion, locations: Iterable[str], storage: Storage, rows: TableRows
) -> frozenset[str]:
    """Files that are in the folders of other tables, or that another table in the same folder names. Copies of the
    table that is asked about are no others, nor is the Hive table that it was."""
    places = Places(storage)
    asked = {location: places.anywhere(location) for location in locations}
    own, rows = OwnFolders.of(version.metadata, version.location, places), asked_once(rows)
    backup = backup_of(identifier, version.metadata, version.location, rows, places)
    names = {".".join(identifier).lower(), "" if backup is None else backup.name.lower()}
    owners = looked_for(lambda: Owners(asked.values(), own.all(), names, rows, places))
    uuid = version.metadata.table_uuid
    others = (row for row in owners.sharers if not may_be_copy(row, uuid, frozenset(own.all()), places))
    named = frozenset(places.anywhere(each) for row in others for each in names_of(row, storage))
    return frozenset(each for each, place in asked.items() if place in named or owners.of(place) is not None)


class Owners:
    """Whose folders some files are in, on whatever server: the deepest decides, over all tables of the metastore `but`
    some (lower case). `sharers` are Iceberg tables with one of the table's own folders."""

    def __init__(
        self, asked: Iterable[Place], own: Iterable[Place], but: Collection[str], rows: TableRows, places: Places
    ) -> None:
        self.sharers: list[TableRow] = []
        self._own = frozenset(own)
        self._around = {folder for parent in {each.parent for each in asked} for folder in parent.upwards()}
        self._owners: dict[Place, str] = {}
        self._of_folders: dict[Place, str | None] = {}
        partitioned = []
        for row in rows.rows():
            if str(row).lower() in but:
                continue
            if row.has_partitions and not row.is_iceberg:
                partitioned.append(row)
            self._note(row, folders_of_row(row, places))
        for row, locations in locations_of_partitions(rows, partitioned, iter):
            self._note(row, (places.anywhere(each) for each in locations if each))

    def _note(self, row: TableRow, folders: Iterable[Place]) -> None:
        near = self._around.intersection(folders)
        if row.is_iceberg and near & self._own:
            self.sharers.append(row)  # what it names is its own, and nothing else in that folder
            near -= self._own
        self._owners.update(dict.fromkeys(near, str(row)))

    def of(self, place: Place) -> str | None:
        """The other table that a file belongs to by its place; None if that is the table itself, or nobody."""
        folder = place.parent
        if folder not in self._of_folders:
            deepest = next((each for each in folder.upwards() if each in self._owners or each in self._own), folder)
            self._of_folders[folder] = self._owners.get(deepest)
        return self._of_folders[folder]


def locations_of_partitions(
    rows: TableRows, partitioned: Sequence[TableRow], kept: Callable[[Iterable[str]], Iterable[str]]
) -> Iterator[tuple[TableRow, list[str]]]:
    """Pairs, in order, of a table and what `kept` chose of the locations of its partitions, of which there may be very
    many. Several tables are asked for at once."""
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="iceberg-partitions") as pool:
        asked = pool.map(lambda row: list(kept(rows.partition_locations(row.identifier))), partitioned)
        yield from zip(partitioned, asked, strict=True)


def copies_of(version: MetadataVersion, rows: TableRows, places: Places) -> tuple[TableRow, ...]:
    """The Iceberg tables that may be copies of a table, and itself."""
    metadata = version.metadata
    own = OwnFolders.of(metadata, version.location, places)
    logged = (places.anywhere(entry.metadata_file).parent for entry in metadata.metadata_log)
    folders = frozenset((*own.all(), *logged))
    return tuple(row for row in rows.rows() if may_be_copy(row, metadata.table_uuid, folders, places))


def may_be_copy(row: TableRow, table_uuid: str | None, folders: Collection[Place], places: Places) -> bool:
    """Whether a row of a metastore may be a table, or a copy that was registered from its metadata. Not all writers of
    rows tell the UUID: of theirs it counts whether the row's folder or metadata file is in one of `folders`."""
    if not row.is_iceberg:
        return False
    told = row.properties.get("uuid")
    if told and table_uuid:
        return told == table_uuid
    told_places = (row.location, row.properties.get(METADATA_LOCATION, ""))
    return any(is_in_any(places.anywhere(each), folders) for each in told_places if each)


def names_of(row: TableRow, storage: Storage) -> Iterator[str]:
    """Every file that another Iceberg table names; nothing if its metadata file is gone, so that nobody can read it."""
    location = row.properties.get(METADATA_LOCATION, "")
    try:
        metadata = read_version(location, storage).metadata
    except MissingFileError:
        logger.warning("Table %s names nothing: its metadata file %s is gone", row, location)
        return
    yield from files_of(metadata, location, storage)
