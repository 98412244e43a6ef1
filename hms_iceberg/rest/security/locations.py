"""Locations that tables may have: below allowed folders, and not over the folders of other tables.

Who may manage a table gets its files: by credentials for its folder, by signed requests, or from the server's plans. So
under a policy a table may not be put into, or around, the folder of one that its maker may not manage.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from hms_iceberg.errors import StorageDeniedError
from hms_iceberg.metastore import Identifier, TableRows
from hms_iceberg.rest.access import Access, Right
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import FOLDER_PROPERTIES
from hms_iceberg.spec.view_metadata import ViewMetadata
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.needed.named_files import folders_of_row

# Hadoop's three names of one store.
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True)
class AllowedLocations:
    """Folders in which files may be.

    Args:
        folders: URIs or paths; None allows every location.
    """

    folders: tuple[str, ...] | None = None

    def check(self, location: str, what: str) -> None:
        """Refuses a location outside the folders.

        Args:
            location: the location.
            what: what is to be there, for the message.

        Raises:
            RefusedError: it is outside, or leads out of a folder by `..`.
        """
        parts = location.replace("\\", "/").split("/")
        if ".." in parts or ".." in unquote(location).split("/") or "\x00" in location:
            raise RefusedError(403, "ForbiddenException", f"The {what} {location!r} is refused: it has '..' in it.")
        if not self.allow(location):
            folders = ", ".join(self.folders or ())
            raise RefusedError(
                403,
                "ForbiddenException",
                f"The {what} {location!r} is refused: this server takes locations below {folders} only. Choose one "
                "there.",
            )

    def allow(self, location: str) -> bool:
        """Whether a location is in one of the folders."""
        given = normal(location)
        return self.folders is None or any(f"{given}/".startswith(f"{normal(folder)}/") for folder in self.folders)

    def check_view(self, new: ViewMetadata, base: ViewMetadata | None) -> None:
        """Refuses a new version of a view that is elsewhere.

        Args:
            new: the new version.
            base: the version before; None for a new view.
        """
        known = set() if base is None else set(_own_locations(base.location, base.properties.items()))
        for what, location in _own_locations(new.location, new.properties.items()):
            if (what, location) not in known:
                self.check(location, what)


def new_locations(new: TableMetadata, base: TableMetadata | None) -> list[tuple[str, str]]:
    """What a version of a table names and the one before it did not: what each is, and the location.

    Args:
        new: the new version.
        base: the version before; None for a new table.
    """
    known = set() if base is None else set(table_locations(base))
    return [each for each in table_locations(new) if each not in known]


def _own_locations(location: str, properties: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    yield "location", location
    for name, value in properties:
        if name in FOLDER_PROPERTIES:
            yield f"value of the property {name!r}", value


def table_locations(metadata: TableMetadata) -> Iterable[tuple[str, str]]:
    """What a version of a table names: what each is, and the location. Data files are not among them."""
    yield from _own_locations(metadata.location, metadata.properties.items())
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield "manifest list", snapshot.manifest_list
        for manifest in snapshot.manifest_locations or ():
            yield "manifest", manifest
    for path in (
        *(file.statistics_path for file in metadata.statistics),
        *(file.statistics_path for file in metadata.partition_statistics),
    ):
        yield "statistics file", path
    for entry in metadata.metadata_log:  # which commits may delete
        yield "earlier metadata file", entry.metadata_file


def normal(location: str) -> str:
    """A location such that two spellings of one are equal: `file:/x`, `file:///x` and `/x`; `s3a://` and `s3://`."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", location
    scheme = _SAME_SCHEMES.get(scheme.lower(), scheme.lower())
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    else:
        authority, path = "", rest.lstrip("/")
    path = posixpath.normpath(f"/{path}").rstrip("/")
    return f"{scheme}://{authority}/{path.lstrip('/')}".rstrip("/")


def check_folders(
    access: Access, identifier: Identifier, locations: Iterable[tuple[str, str]], rows: TableRows | None
) -> None:
    """Refuses locations in or around the folders of tables that the caller may not manage.

    Every table of the metastore is looked at. A Hive table's partitions count where they are in its folder.

    Args:
        access: the caller.
        identifier: the table that is to have the locations.
        locations: what each is, for the message, and the location.
        rows: the metastore's tables; None if it does not tell of them.

    Raises:
        RefusedError: there are such tables, or it cannot be told.
    """
    places = Places(None)
    asked = [(what, location, places.anywhere(location)) for what, location in locations]
    if access.allows_everything or not asked:
        return
    if rows is None:
        raise _refused(*asked[0][:2], "this server's catalog does not tell whose folder it is")
    own = tuple(part.lower() for part in identifier)
    for row in rows.rows():
        name = tuple(part.lower() for part in row.identifier)
        if name == own or access.allows(Right.MANAGE, *name):
            continue
        for folder in folders_of_row(row, places):
            for what, location, place in asked:
                if place.is_in(folder) or folder.is_in(place):
                    raise _refused(what, location, "files of a table that you may not manage are there")


def _refused(what: str, location: str, why: str) -> RefusedError:
    return RefusedError(
        403, "ForbiddenException", f"The {what} {location!r} is refused: {why}. Choose another one, or none."
    )


class _Confined:
    """A purge deletes what manifests name, with the server's rights; who may write to a table may write those."""

    def __init__(self, storage: Storage, may_go: Callable[[str], bool]) -> None:
        self._storage = storage
        self._may_go = may_go

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def delete(self, location: str) -> None:
        """Deletes a file, unless it is elsewhere."""
        if not self._may_go(location):
            raise StorageDeniedError(f"{location} stays: it is in none of the table's own folders.")
        self._storage.delete(location)


def confined(storage: Storage, may_go: Callable[[str], bool]) -> Storage:
    """The same storage, which refuses to delete some files.

    Args:
        storage: where the files are.
        may_go: whether the file at a location may be deleted.
    """
    return cast(Storage, _Confined(storage, may_go))
