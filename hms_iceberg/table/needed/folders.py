"""The folders of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hms_iceberg.arrow.storage.data_locations import LocationRules
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.table.needed.deleting import path_of

METADATA_LOCATION = "metadata_location"
"""The property of a row that tells where a table's metadata file is."""


@dataclass(frozen=True)
class OwnFolders:
    """Where a table's files go, as `path_of` has it.

    Attributes:
        location: the table's folder.
        metadata: where its metadata files are, and where new ones go.
        data: where new data files go.
    """

    location: str
    metadata: frozenset[str]
    data: str

    @classmethod
    def of(cls, metadata: TableMetadata, metadata_location: str) -> OwnFolders:
        """The folders of a table."""
        return cls.by_properties(metadata.location, metadata.properties, metadata_location)

    @classmethod
    def by_properties(cls, location: str, properties: Mapping[str, str], metadata_location: str) -> OwnFolders:
        """The folders of a table of some properties."""
        places = {metadata_folder(location, properties), metadata_location.rpartition("/")[0]}
        data = LocationRules.of(location, properties).folder
        return cls(_path(location), frozenset(_path(place) for place in places if place), _path(data))

    def all(self) -> Iterator[str]:
        """All of them."""
        yield self.location
        yield from self.metadata
        yield self.data


def is_in(path: str, folder: str) -> bool:
    """Whether a path is a folder, or in it."""
    return path == folder or path.startswith(f"{folder}/")


def _path(location: str) -> str:
    return path_of(location).rstrip("/")
