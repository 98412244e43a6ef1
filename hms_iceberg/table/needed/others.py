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
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore, TableRow, TableRows
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed.named_files import METADATA_LOCATION, OwnFolders, files_of, folders_of_row, is_in, path_of
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES = 2
MIGRATION_JOURNALS = "_hive-migration."
"""What names of a migration's journal and notes begin with."""
REPAIR_JOURNALS = "_repair-"
"""What names of a repair's journals begin with."""
MIGRATION_ID = "hms_iceberg.migration-id"
"""The mark of a migration, in the properties of the Iceberg table and in the row of the Hive table."""


def is_journal(location: str) -> bool:
    """Whether a file is a journal, which is kept as long as its table is."""
    return location.rpartition("/")[2].removeprefix("_").startswith((MIGRATION_JOURNALS[1:], REPAIR_JOURNALS[1:]))


def default_backup_name(table: str) -> str:
    """The name of the Hive table after a migration, as Iceberg's own migration has it."""
    return f"{table}_backup_"


def table_rows_of(metastore: Metastore) -> TableRows | None:
    """The interface to all rows of a metastore; None if it gives only single tables."""
    return getattr(metastore, "table_rows", None)


@dataclass(frozen=True)
class HiveFolders:
    """Folders of a Hive table's files, which may hold an Iceberg table's folders too.

    Attributes:
        name: the Hive table.
        folders: its partitions' or its own, as `path_of` has them.
        own: the Iceberg table's own folders.
    """

    name: str
    folders: frozenset[str]
    own: OwnFolders

    def needs(self, path: str) -> bool:
        """Whether the Hive table reads a file (a path as `path_of` has it): not what is hidden or Iceberg's own."""
        folder, _, below = path.rpartition("/")
        while folder:
            if below.startswith(("_", ".")):
                return False
            if folder in self.folders:
                inside = (own for own in self.own.all() if own.startswith(f"{folder}/"))
                return not any(is_in(path, own) for own in inside)
            folder, _, below = folder.rpartition("/")
        return False


def hive_folders(row: TableRow, own: OwnFolders, rows: TableRows) -> HiveFolders:
    """Where the files of a Hive table are.

    Args:
        row: the Hive table.
        own: the folders of an Iceberg table that may be in them.
        rows: the metastore.

    Raises:
        NoSuchTableError: the table was dropped or renamed meanwhile.
    """
    places: Iterable[str] = rows.partition_locations(row.identifier) if row.has_partitions else (row.location,)
    return HiveFolders(str(row), frozenset(path_of(place).rstrip("/") for place in places), own)


def backup_of(
    identifier: Identifier, metadata: TableMetadata, metadata_location: str, rows: TableRows
) -> HiveFolders | None:
    """The Hive table that a migrated table was, while it is kept as the way back; None if there is none.

    It is known by the mark of the migration in its row, or (of a migration by Apache Iceberg) by its name and place.

    Args:
        identifier: the Iceberg table.
        metadata: the Iceberg table.
        metadata_location: its metadata file.
        rows: the metastore.

    Raises:
        NoSuchTableError: it is renamed again and again while it is looked for.
    """
    return looked_for(lambda: _backup_of(identifier, metadata, metadata_location, rows))


def looked_for(look: Callable[[], T]) -> T:
    """The result of a search in a metastore's rows; the search is repeated if a table is renamed during it.

    Raises:
        NoSuchTableError: they are renamed again and again.
    """
    for _ in range(_TRIES):
        try:
            return look()
        except NoSuchTableError as error:
            logger.info("The metastore's tables are looked at again: %s", error)
    return look()


def _backup_of(
    identifier: Identifier, metadata: TableMetadata, metadata_location: str, rows: TableRows
) -> HiveFolders | None:
    own = OwnFolders.of(metadata, metadata_location)
    row = rows.row((*identifier[:-1], default_backup_name(identifier[-1])))
    mark = metadata.properties.get(MIGRATION_ID)
    if (
        row is None
        or row.is_iceberg
        or not (_is_marked(row, mark) or path_of(row.location).rstrip("/") == own.location)
    ):
        same = () if mark is None else rows.rows_with(MIGRATION_ID, mark)
        row = next((each for each in same if not each.is_iceberg and _is_marked(each, mark)), None)
    return None if row is None else hive_folders(row, own, rows)


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
    """Files of a table that others need, each with who does.

    Others are the Hive table that it was before its migration, while that is kept as the way back, tables that were
    registered from metadata of it, and, for files outside of the table's own folders, whoever has them in its folder:
    of files that were taken in by `add_files`, the Hive table that they came from.

    Args:
        identifier: the table.
        version: the table.
        locations: files that it names, or named.
        storage: where they are.
        rows: the metastore; None if it does not tell of other tables.
        keep_backup: whether the Hive table counts.

    Returns:
        location of each file that has to stay, as `locations` has it, to who needs it: part of a sentence for people.

    Raises:
        StorageError, CorruptManifestError, CorruptMetadataError: what a copy names cannot be told.
        NoSuchTableError: a table is renamed again and again while it is looked at.
    """
    asked = {path_of(location): location for location in locations}
    if rows is None or not asked:
        return {}
    found: dict[str, str] = {}
    backup = backup_of(identifier, version.metadata, version.location, rows)
    if backup is not None and keep_backup:
        who = f"the Hive table {backup.name}, its way back from the migration"
        found = {asked[path]: who for path in asked if backup.needs(path)}
    own = tuple(part.lower() for part in identifier)
    for row in copies_of(version, rows):
        if tuple(part.lower() for part in row.identifier) != own:
            for location in names_of(row, storage):
                path = path_of(location)
                if path in asked:
                    found[asked[path]] = f"table {row}, a copy"
    folders = tuple(OwnFolders.of(version.metadata, version.location).all())
    left = [path for path in asked if asked[path] not in found and not _is_in_any(path, folders)]
    names = {".".join(own), "" if backup is None else backup.name.lower()}
    owners = looked_for(lambda: _owners(left, names, rows))
    return found | {asked[path]: f"table {who} (they are in its folder)" for path, who in owners.items()}


def _owners(paths: Collection[str], but: Collection[str], rows: TableRows) -> dict[str, str]:
    """Which of some paths lie in the folder of another table, and of which.

    Args:
        paths: the paths.
        but: tables that do not count.
        rows: the metastore, whose tables are all looked at if there are paths.
    """
    if not paths:
        return {}
    owners: dict[str, str] = {}
    partitioned = []
    for row in rows.rows():
        if str(row).lower() in but:
            continue
        if row.has_partitions and not row.is_iceberg:
            partitioned.append(row)
        owners.update(dict.fromkeys(folders_of_row(row), str(row)))

    for row, locations in locations_of_partitions(rows, partitioned, iter):
        owners.update(dict.fromkeys((path_of(location).rstrip("/") for location in locations), str(row)))
    found = {}
    for path in paths:
        folder = path
        while folder and folder not in owners:
            folder = folder.rpartition("/")[0]
        if folder:
            found[path] = owners[folder]
    return found


def _is_in_any(path: str, folders: Collection[str]) -> bool:
    return any(is_in(path, folder) for folder in folders)


def locations_of_partitions(
    rows: TableRows, partitioned: Sequence[TableRow], kept: Callable[[Iterable[str]], Iterable[str]]
) -> Iterator[tuple[TableRow, list[str]]]:
    """Where the partitions of some tables are, several tables asked at once.

    Args:
        rows: the metastore.
        partitioned: the tables.
        kept: chooses among a table's locations, of which there may be very many.

    Returns:
        pairs of a table and what `kept` chose of the locations of its partitions, in the order of `partitioned`.

    Raises:
        NoSuchTableError: one was dropped or renamed meanwhile.
    """
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="iceberg-partitions") as pool:
        asked = pool.map(lambda row: list(kept(rows.partition_locations(row.identifier))), partitioned)
        yield from zip(partitioned, asked, strict=True)


def copies_of(version: MetadataVersion, rows: TableRows) -> tuple[TableRow, ...]:
    """The Iceberg tables that may be copies of a table, and itself.

    They are asked for by properties: to look at every table of a metastore takes minutes where there are many.

    Args:
        version: the version of the table.
        rows: the metastore's rows.

    Raises:
        MetastoreError: the metastore cannot be asked.
    """
    metadata = version.metadata
    own = OwnFolders.of(metadata, version.location)
    logged = (path_of(entry.metadata_file).rpartition("/")[0] for entry in metadata.metadata_log)
    folders = frozenset((*own.all(), *logged))
    uuid = metadata.table_uuid
    asked = (rows.rows_with("uuid", uuid), rows.iceberg_rows_without("uuid")) if uuid else (rows.rows(),)
    found = {row.identifier: row for each in asked for row in each}
    return tuple(row for row in found.values() if may_be_copy(row, uuid, folders))


def may_be_copy(row: TableRow, table_uuid: str | None, folders: Collection[str]) -> bool:
    """Whether a row of a metastore may be a table, or a copy that was registered from its metadata.

    Not all writers of rows tell the UUID. Of theirs the place counts.

    Args:
        row: the row.
        table_uuid: the table's; None if it has none.
        folders: folders of the table, as `path_of` has them.

    Returns:
        True if the UUIDs are equal; if one is not told, if the row's folder or metadata file is in one of `folders`.
    """
    if not row.is_iceberg:
        return False
    told = row.properties.get("uuid")
    if told and table_uuid:
        return told == table_uuid
    places = (path_of(each) for each in (row.location, row.properties.get(METADATA_LOCATION, "")))
    return any(_is_in_any(place, folders) for place in places)


def names_of(row: TableRow, storage: Storage) -> Iterator[str]:
    """Every file that another Iceberg table names; nothing if its metadata file is gone, so that nobody can read it.

    Args:
        row: the row of the table.
        storage: where the files are.

    Raises:
        StorageError, CorruptManifestError, CorruptMetadataError: it cannot be told.
    """
    location = row.properties.get(METADATA_LOCATION, "")
    try:
        metadata = read_version(location, storage).metadata
    except MissingFileError:
        logger.warning("Table %s names nothing: its metadata file %s is gone", row, location)
        return
    yield from files_of(metadata, location, storage)
