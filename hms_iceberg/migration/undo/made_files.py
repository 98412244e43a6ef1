"""Distinguishes the files that a migration and its Iceberg table made from those of others in the same folders.

A place alone makes no file a migration's. Files are deleted by name: those in the Iceberg table's own metadata, and
those with the migration's id in name or contents, unless another row of the metastore names them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import (
    CorruptFileError,
    IcebergError,
    MetastoreUnavailableError,
    MissingFileError,
    UnsupportedError,
)
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.metastore import MetadataVersion, TableRow
from hms_iceberg.migration.migration_journal import MigrationRecord
from hms_iceberg.migration.migration_progress import in_threads
from hms_iceberg.migration.migration_state import METADATA
from hms_iceberg.spec.places import Place
from hms_iceberg.storage import Places
from hms_iceberg.table.needed_files.named_files import files_of
from hms_iceberg.table.needed_files.needed_by_others import (
    MIGRATION_ID,
    MIGRATION_JOURNALS,
    Owners,
    looked_for,
    may_be_copy,
    names_of,
)
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)

_THREADS = 8


class MadeFiles:
    """The files of a migration's Iceberg table, listed when they are first asked for. `version` is the location of the
    Iceberg table's version that was given up, None if names were never switched, or not by this package."""

    def __init__(self, hive: HiveTables, record: MigrationRecord, version: str | None = None) -> None:
        self._hive = hive
        self._storage = record.storage
        self._journal = journal = record.journal
        self._version = version
        self._places = Places(record.storage)
        self._metadata = f"{journal.iceberg_location}/{METADATA}" if journal.is_copy else record.folder

    @cached_property
    def other_tables(self) -> tuple[TableRow, ...]:
        """Iceberg tables that may use the same files: copies, neighbours, and the table under another name."""
        uuids = {None, *(version.metadata.table_uuid for version in self._marked)}  # None asks for the place alone
        place = self._places.anywhere(self._journal.iceberg_location)
        # Without a version there is nothing that others could name, but the table may have another name. A version that
        # was given up and is gone already had files that others may name.
        made = self._marked or self._version is not None
        rows = self._hive.table_rows.rows(None if made else self._journal.database)
        return tuple(
            row
            for row in rows
            if row.is_iceberg
            and not self._is_own(row)
            and (self._is_marked(row) or any(may_be_copy(row, each, (place,), self._places) for each in uuids))
        )

    @property
    def is_given_up(self) -> bool:
        """Whether it is certain that the Hive table takes the name back."""
        return self._version is not None

    @property
    def renamed(self) -> TableRow | None:
        """The Iceberg table under another name than the migration gave it, if there is one."""
        return next((row for row in self.other_tables if self._is_marked(row)), None)

    @property
    def versions(self) -> tuple[str, ...]:
        """Locations of the Iceberg table's metadata files, as far as no other table names them."""
        kept = self._kept
        found = (version.location for version in self._marked)
        return tuple(each for each in found if kept is not None and self._places.anywhere(each) not in kept)

    def delete(self) -> None:
        """Deletes the files; those that are gone already are no error, so the call can be repeated. Data files of a
        migration in place are the Hive table's, or were added to the folders around it, and stay."""
        kept = self._kept
        if kept is None:
            return
        doomed: dict[str, None] = {}
        for version in self._marked:
            files = files_of(version.metadata, version.location, self._storage, _pass_over)
            doomed.update((each, None) for each in files.data if self._is_of_copy(each))
            doomed.update((each, None) for each in files.metadata)
        if self._journal.is_copy and self._version is None:  # nobody has used it
            found = [info.location for info in self._storage.list(self._journal.iceberg_location) if not info.is_linked]
            doomed.update((location, None) for location in self._of_nobody_else(found))
        doomed.update(
            (info.location, None) for info in self._storage.list(self._metadata) if self._is_named(info.location)
        )
        versions = {version.location for version in self._marked}
        first = (each for each in doomed if self._places.anywhere(each) not in kept and each not in versions)
        for _ in in_threads(self._storage.delete, first, _THREADS):
            pass
        for each in versions:
            if self._places.anywhere(each) not in kept:
                self._storage.delete(each)

    def _of_nobody_else(self, locations: Sequence[str]) -> Iterator[str]:
        """The files that are not in the folder of another table, of any kind."""
        asked = {location: self._places.anywhere(location) for location in locations}
        journal = self._journal
        names = {f"{journal.database}.{each}" for each in (journal.table, journal.staging, journal.backup)}
        folders = [self._places.anywhere(each) for each in (journal.iceberg_location, self._metadata)]
        rows = self._hive.table_rows
        owners = looked_for(lambda: Owners(asked.values(), folders, names, rows, self._places))
        return (location for location, place in asked.items() if owners.of(place) is None)

    def _is_named(self, location: str) -> bool:
        """Whether a file carries the migration's id in its name, and is not one of its notes."""
        name = location.rpartition("/")[2]
        return self._journal.migration_id in name and not name.startswith(MIGRATION_JOURNALS)

    def _is_of_copy(self, location: str) -> bool:
        folder = self._places.anywhere(self._journal.iceberg_location)
        return self._journal.is_copy and self._places.anywhere(location).is_in(folder)

    def _is_own(self, row: TableRow) -> bool:
        journal = self._journal
        names = ((journal.database, journal.table), (journal.database, journal.staging))
        return self._is_marked(row) and row.identifier in names

    def _is_marked(self, row: TableRow) -> bool:
        return row.properties.get(MIGRATION_ID) == self._journal.migration_id

    @cached_property
    def _marked(self) -> tuple[MetadataVersion, ...]:
        """The version that was given up; else every version in the folder that has the migration's id."""
        if self._version is not None:
            return tuple(self._read([self._version]))
        listed = (info.location for info in self._storage.list(self._metadata))
        found = self._read(each for each in listed if each.endswith(".metadata.json"))
        return tuple(version for version in found if self._is_version(version))

    def _is_version(self, version: MetadataVersion) -> bool:
        return version.metadata.properties.get(MIGRATION_ID) == self._journal.migration_id

    def _read(self, locations: Iterable[str]) -> Iterator[MetadataVersion]:
        for location in locations:
            try:
                yield read_version(location, self._storage)
            except (MissingFileError, CorruptFileError, UnsupportedError) as error:
                logger.info("Not taken for a part of the migration of %s: %s", self._journal.name, error)

    @cached_property
    def _kept(self) -> frozenset[Place] | None:
        """The places that other tables name; None if that cannot be found out, and everything stays."""
        tables = self.other_tables
        try:
            return frozenset(self._places.anywhere(each) for row in tables for each in names_of(row, self._storage))
        except MetastoreUnavailableError:
            raise
        except IcebergError as error:
            logger.warning(
                "Whether other Iceberg tables use files of the migration of %s cannot be told (%s); all in %s stay.",
                self._journal.name,
                error,
                self._metadata,
            )
            return None


def _pass_over(error: Exception) -> None:
    if not isinstance(error, (MissingFileError, CorruptFileError)):
        raise error
    logger.info("Files that were deleted already are passed over: %s", error)
