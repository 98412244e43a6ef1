"""Locations that tables, views and namespaces may have: below allowed folders, and not over the folders of others.

Who may manage a table gets its files: by credentials for its folder, by signed requests, or from the server's plans. So
under a policy a table may not be put into, or around, the folder of one that its maker may not manage, nor into that of
a namespace in which its maker may make none. Text is only read: everything is compared as places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from hms_iceberg.arrow.storage.data_locations import LocationRules
from hms_iceberg.errors import StorageDeniedError
from hms_iceberg.metastore import Identifier, TableRows
from hms_iceberg.printable import printable
from hms_iceberg.rest.access import Access, Right
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata
from hms_iceberg.spec.places import split_location
from hms_iceberg.spec.table_properties import FOLDER_PROPERTIES, metadata_folder
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.needed_files.named_files import folders_of_row, is_in_any
from hms_iceberg.table.needed_files.needed_by_others import locations_of_partitions

_MESSAGE_LENGTH = 300
# Families of places that lead to no other server than the settings name.
_ONE_STORE = ("file", "s3", "gs", "abfs")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class Location:
    """A location that a request names; `what` is to be there, for messages."""

    what: str
    text: str

    def refused(self, why: str) -> RefusedError:
        """The error for this location; `why` ends the sentence."""
        text = self.text[:_MESSAGE_LENGTH]
        return RefusedError(403, "ForbiddenException", f"The {self.what} {text!r} is refused: {why}")

    def check_spelling(self) -> None:
        """Refuses a location that others may read as another place: a metastore, a store or a library may tidy up
        dots and slashes, or decode escapes."""
        _, authority, path = split_location(self.text)
        if not path.startswith("/") and (path or not authority):
            raise self.refused("it is no absolute location. Choose one that begins with a scheme, such as s3://.")
        if "\\" in self.text or self.text != printable(self.text):
            raise self.refused("it has a backslash or a control character in it. Choose one without.")
        decoded, further = "", self.text
        while decoded != further:
            decoded, further = further, unquote(further)
            if any(segment in (".", "..") for segment in re.split(r"[/\\]", further)):
                raise self.refused("it has '.' or '..' in it. Spell it without.")
        if "//" in path.rstrip("/"):
            raise self.refused("it has '//' in it. Spell it without.")


@dataclass(frozen=True)
class AllowedLocations:
    """Folders in which files may be; None allows every location."""

    folders: tuple[str, ...] | None = None

    def check(self, location: str, what: str, places: Places | None = None) -> None:
        """Refuses a location outside the folders, or of an ambiguous spelling."""
        named = Location(what, location)
        named.check_spelling()
        if not self.allow(location, places):
            folders = ", ".join(self.folders or ())
            raise named.refused(f"this server takes locations below {folders} only. Choose one there.")

    def allow(self, location: str, places: Places | None = None) -> bool:
        known = places or Places(None)
        return self.folders is None or is_in_any(known.of(location), map(known.of, self.folders))


# ------------------------------------------------------------------------------------------ what names locations


def new_locations(new: TableMetadata, base: TableMetadata | None) -> list[Location]:
    """The locations that a version of a table names and the one before it did not."""
    known = set() if base is None else set(table_locations(base))
    return [each for each in table_locations(new) if each not in known]


def table_locations(metadata: TableMetadata) -> Iterator[Location]:
    """The locations that a version of a table names, without data files."""
    yield from _own_locations(metadata.location, metadata.properties)
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield Location("manifest list", snapshot.manifest_list)
        for manifest in snapshot.manifest_locations or ():
            yield Location("manifest", manifest)
    for path in (
        *(file.statistics_path for file in metadata.statistics),
        *(file.statistics_path for file in metadata.partition_statistics),
    ):
        yield Location("statistics file", path)
    for entry in metadata.metadata_log:  # which commits may delete
        yield Location("earlier metadata file", entry.metadata_file)


def new_view_locations(new: ViewMetadata, base: ViewMetadata | None) -> list[Location]:
    """The locations that a version of a view names and the one before it did not."""
    known = set() if base is None else set(_own_locations(base.location, base.properties))
    return [each for each in _own_locations(new.location, new.properties) if each not in known]


def _own_locations(location: str, properties: Mapping[str, str]) -> Iterator[Location]:
    yield Location("location", location)
    for name in FOLDER_PROPERTIES:
        if properties.get(name):
            yield Location(f"value of the property {name!r}", _below(location, properties[name]))


def _below(location: str, folder: str) -> str:
    """A folder of a property, which may be relative to a table's location."""
    return folder if _ABSOLUTE.match(folder) else f"{location.rstrip('/')}/{folder}"


def folders_of(location: str, properties: Mapping[str, str], file: str) -> Iterator[str]:
    """The folders that a table or view writes to; `file` is its metadata file, or empty."""
    yield location
    yield metadata_folder(location, properties)
    yield _below(location, LocationRules.of(location, properties).folder)
    if file:
        yield file.rpartition("/")[0]


# --------------------------------------------------------------------------------------------- whose places they are


@dataclass(frozen=True)
class Namespaces:
    """Folders of namespaces by name, from the metastore."""

    folders: Mapping[str, str]

    def check(self, access: Access, name: str, locations: Iterable[Location], places: Places, everywhere: bool) -> None:
        """Refuses locations in or around the folder of somebody else's namespace and, unless `everywhere`, outside of
        all namespaces. A folder that holds other namespaces, such as a warehouse's root, is nobody's own."""
        exactly = [places.of(folder) for folder in self.folders.values()]
        known = {each: places.anywhere(folder) for each, folder in self.folders.items()}
        for location in locations:
            place = places.anywhere(location.text)
            if known and not everywhere and not is_in_any(places.of(location.text), exactly):
                raise location.refused(
                    "it is in no namespace's folder. Choose one there, or have the server allow it: --allowed-location."
                )
            for owner, folder in known.items():
                is_shared = any(other != folder and other.is_in(folder) for other in known.values())
                is_over = folder.is_in(place) or (place.is_in(folder) and not is_shared)
                if is_over and owner != name and not access.allows(Right.MANAGE, owner):
                    raise location.refused(
                        "it is over the folder of a namespace that you may not manage. Choose another one, or none."
                    )

    def check_server(self, location: Location, places: Places) -> None:
        """Refuses a location on a server that no namespace is on: the client would choose what this server connects
        to."""
        place = places.of(location.text)
        known = {(each.family, each.authority) for each in map(places.of, self.folders.values())}
        if place.family not in _ONE_STORE and (place.family, place.authority) not in known:
            raise location.refused(
                "no namespace is on that server. Have this server allow it, if it is to be: --allowed-location."
            )


def check_tables(
    access: Access, identifier: Identifier, locations: Sequence[Location], rows: TableRows | None, places: Places
) -> None:
    """Refuses locations in or around the folders of any table of the metastore (and its partitions outside) that the
    caller may not manage, and all of them without `rows`, as nobody can tell then."""
    if rows is None:
        raise locations[0].refused("this server's catalog does not tell whose folder it is. Choose none.")
    asked = [(location, places.anywhere(location.text)) for location in locations]
    own = tuple(part.lower() for part in identifier)
    for row in rows.rows():
        name = tuple(part.lower() for part in row.identifier)
        if name == own or access.allows(Right.MANAGE, *name):
            continue
        for folder in folders_of_row(row, places):
            for location, place in asked:
                if place.is_in(folder) or folder.is_in(place):
                    raise location.refused(
                        "files of a table that you may not manage are there. Choose another one, or none."
                    )


def check_partitions(access: Access, locations: Sequence[Location], rows: TableRows, places: Places) -> None:
    """Refuses locations in or around partitions of Hive tables that the caller may not manage, wherever they are."""
    asked = [(location, places.anywhere(location.text)) for location in locations]
    partitioned = [
        row
        for row in rows.rows()
        if row.has_partitions and not row.is_iceberg and not access.allows(Right.MANAGE, *row.identifier)
    ]
    for _, folders in locations_of_partitions(rows, partitioned, iter):
        for folder in map(places.anywhere, folders):
            for location, place in asked:
                if place.is_in(folder) or folder.is_in(place):
                    raise location.refused(
                        "a partition of a table that you may not manage is there. Choose another one, or none."
                    )


class _Confined:
    """A purge deletes the files that manifests name, with the server's rights, and writers of a table can write its
    manifests."""

    def __init__(self, storage: Storage, may_go: Callable[[str], bool]) -> None:
        self._storage = storage
        self._may_go = may_go

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def delete(self, location: str) -> None:
        if not self._may_go(location):
            raise StorageDeniedError(f"{location} stays: it is in none of the table's own folders.")
        self._storage.delete(location)


def confined(storage: Storage, may_go: Callable[[str], bool]) -> Storage:
    """A storage that deletes only files for which `may_go` holds."""
    return cast(Storage, _Confined(storage, may_go))
