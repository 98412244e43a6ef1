"""Ways back, and the files that they need: journals beside a table's metadata, and the Hive table before a migration.

Journals have hidden names, so that other engines do not take them for orphans either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.metastore import Identifier, Metastore, TableRow, TableRows
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.table.needed.named_files import OwnFolders, is_in, path_of

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
