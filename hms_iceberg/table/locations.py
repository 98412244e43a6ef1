"""Locations of new files of a table, by PyIceberg's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hms_iceberg.arrow.storage.data_locations import data_location
from hms_iceberg.spec.table_properties import metadata_folder


class HasPath(Protocol):
    """A partition that knows its relative directory."""

    def to_path(self) -> str:
        """The partition's folder, such as `country=DE/day=2017-11-16`."""
        ...


@dataclass(frozen=True)
class LocationProvider:
    """Locations by the table's properties `write.data.path`, `write.metadata.path` and `write.object-storage.*`."""

    table_location: str
    table_properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def new_data_location(self, data_file_name: str, partition_key: HasPath | str | None = None) -> str:
        """The location of a data file.

        Args:
            data_file_name: its name without folders.
            partition_key: the partition, or its relative directory (`PartitionSpec.partition_to_path`).
        """
        path = partition_key or ""
        if not isinstance(path, str):
            path = path.to_path()
        return data_location(self.table_location, self.table_properties, path, data_file_name)

    def new_metadata_location(self, metadata_file_name: str) -> str:
        """The location of a metadata file."""
        return f"{metadata_folder(self.table_location, self.table_properties)}/{metadata_file_name}"


def load_location_provider(table_location: str, table_properties: Mapping[str, str]) -> LocationProvider:
    return LocationProvider(table_location, table_properties)
