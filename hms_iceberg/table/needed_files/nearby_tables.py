"""Other tables in and around a folder: what is theirs must not be deleted for another table's sake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hms_iceberg.errors import CorruptMetadataError, MissingFileError, UnsupportedError
from hms_iceberg.metastore import Identifier, TableRow, TableRows
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.places import Place
from hms_iceberg.storage import FileInfo, Places, Storage
from hms_iceberg.table.needed_files.named_files import OwnFolders, folders_of_row
from hms_iceberg.table.needed_files.needed_by_others import (
    HiveFolders,
    locations_of_partitions,
    looked_for,
    may_be_copy,
)
from hms_iceberg.transaction.workspace import read_version

METADATA_FILES = (".metadata.json", ".metadata.json.gz")
"""How the names of metadata files end."""
# Folders of metadata below a table's own: of most tables, and of one that was migrated without partitions.
_USUAL = ("/metadata", "/_iceberg")


@dataclass(frozen=True)
class NearbyTables:
    """Others who need files below a folder."""

    # folders of others, on whatever server (see `Place.anywhere`), and as they are told
    folders: Mapping[Place, str] = field(default_factory=dict)
    hive: tuple[HiveFolders, ...] = ()  # Hive tables with files in the table's own folders
    # Iceberg tables that may name any file of the table: what they name has to be read
    sharers: tuple[TableRow, ...] = ()

    def needs(self, place: Place) -> bool:
        """Whether a file is in a folder of others; a place on whatever server."""
        in_folders = any(folder in self.folders for folder in place.parent.upwards())
        return in_folders or any(each.needs(place) for each in self.hive)

    def refuse(self, what: str) -> None:
        """Refuses to delete the folder as a whole if others have files in it."""
        others = (*self.folders.values(), *(each.name for each in self.hive), *map(str, self.sharers))
        if others:
            raise UnsupportedError(
                f"Cannot {what}: others have files in its folder, or share its files: {', '.join(sorted(others))}. "
                "Drop or move them first."
            )


class Search:
    """Looks for the neighbours of a table in a folder; `but` is a table that does not count."""

    def __init__(
        self,
        identifier: Identifier,
        metadata: TableMetadata,
        metadata_location: str,
        folder: str,
        places: Places,
        but: str = "",
    ) -> None:
        self._places = places
        self._but = {".".join(part.lower() for part in identifier), but}
        self._uuid = metadata.table_uuid
        self._own = OwnFolders.of(metadata, metadata_location, places)
        self._folder = places.anywhere(folder)
        self._folders: dict[Place, str] = {}
        self._hive: dict[str, list[Place]] = {}
        self._sharers: list[TableRow] = []
        self._earlier: set[str | None] = set()

    def found(self) -> NearbyTables:
        hive = (HiveFolders(name, frozenset(places), self._own) for name, places in self._hive.items())
        return NearbyTables(self._folders, tuple(hive), tuple(self._sharers))

    def in_metastore(self, rows: TableRows) -> None:
        """Finds those that a metastore knows: every table's folders, and every partition's."""
        looked_for(lambda: self._in_rows(rows))

    def _in_rows(self, rows: TableRows) -> None:
        partitioned = []
        for row in rows.rows():
            if str(row).lower() in self._but:
                continue
            if row.is_iceberg:
                self._iceberg(row)
            elif row.has_partitions:
                partitioned.append(row)
                self._of_partitioned(row)
            else:
                self._of_hive(str(row), row.location)
        for row, places in locations_of_partitions(rows, partitioned, self._near):
            for place in places:
                self._of_hive(str(row), place)

    def in_listing(self, listed: Iterable[FileInfo], storage: Storage) -> None:
        """Finds tables by metadata files in the folder, also those that no metastore has."""
        newest: dict[str, FileInfo] = {}
        for file in listed:
            if file.location.endswith(METADATA_FILES):
                folder = file.location.rpartition("/")[0]
                if self._places.anywhere(folder) not in self._own.metadata:
                    newest[folder] = max(
                        file, newest.get(folder, file), key=lambda each: (each.modified_ms, each.location)
                    )
        for folder, file in newest.items():
            try:
                metadata = read_version(file.location, storage).metadata
            except (MissingFileError, CorruptMetadataError):
                self._claim(_without_usual_folders(folder))
                continue
            theirs = OwnFolders.of(metadata, "", self._places)
            if theirs.location == self._own.location and metadata.table_uuid == self._uuid:
                continue  # where the table's own metadata files were once
            # It may have been moved: then its folder has another name here than its metadata has.
            for place in (_without_usual_folders(folder), metadata.location):
                if self._places.anywhere(place) != self._own.location:
                    self._claim(place)
            for own in theirs.all():
                if own != self._own.location:
                    self._claim_place(own, own.path)

    def in_own_folders(self, unnamed: Iterable[FileInfo], storage: Storage) -> None:
        """Finds tables that lived in the folder before this one, and may still name files here, by the metadata files
        among those that this table does not name (`unnamed`)."""
        for file in unnamed:
            location = file.location
            if location.endswith(METADATA_FILES) and self._places.anywhere(location).parent in self._own.metadata:
                try:
                    uuid = read_version(location, storage).metadata.table_uuid
                except (MissingFileError, CorruptMetadataError):
                    continue
                if uuid != self._uuid:
                    self._earlier.add(uuid)

    # ------------------------------------------------------------------------------------------- one row

    def _iceberg(self, row: TableRow) -> None:
        shares = may_be_copy(row, self._uuid, frozenset(self._own.all()), self._places)
        # A snapshot of a Hive table reads files of others wherever they are.
        shares |= row.properties.get("snapshot", "").lower() == "true"
        # A row need not tell the UUID.
        shares |= bool(self._earlier) and row.properties.get("uuid") in {*self._earlier, None}
        for place in folders_of_row(row, self._places):
            shares |= not self._claim_place(place, place.path)
        if shares:
            self._sharers.append(row)

    def _of_partitioned(self, row: TableRow) -> None:
        """The folder of partitions that are there, or come: not if it is the table's own too."""
        if row.location:
            self._claim(row.location)

    def _of_hive(self, name: str, location: str) -> None:
        """A folder of Hive files. One far above the table is not read down to it."""
        place = self._places.anywhere(location)
        is_far_above = self._own.location != place and self._own.location.is_in(place)
        if location and not self._claim_place(place, location) and not is_far_above:
            self._hive.setdefault(name, []).append(place)

    def _near(self, locations: Iterable[str]) -> Iterator[str]:
        """The locations that are in the folder, or that contain it."""
        return (location for location in locations if self._is_near(self._places.anywhere(location)))

    def _claim(self, location: str) -> bool:
        return self._claim_place(self._places.anywhere(location), location)

    def _claim_place(self, place: Place, told: str) -> bool:
        """Notes a folder of others; False if folders of the table itself are in it, so that files decide."""
        if not self._is_near(place):
            return True
        if self._holds_own(place):
            return False
        self._folders.setdefault(place, told.rstrip("/"))
        return True

    def _holds_own(self, place: Place) -> bool:
        return any(own.is_in(place) for own in self._own.all())

    def _is_near(self, place: Place) -> bool:
        return place.is_in(self._folder) or self._folder.is_in(place)


def _without_usual_folders(folder: str) -> str:
    for ending in _USUAL:
        folder = folder.removesuffix(ending)
    return folder
