"""Locations and names of new data files: the layouts of Iceberg Java.

Source: Iceberg documentation, "Configuration" (``write.data.path``, ``write.object-storage.*``).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import mmh3

from hms_iceberg.spec.table_properties import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    OBJECT_STORAGE_ENABLED,
    OBJECT_STORAGE_PARTITIONED_PATHS,
    OBJECT_STORAGE_PATH,
)

_ENTROPY_BITS = 20
_DEPRECATED_PATHS = (OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH)


@dataclass(frozen=True)
class LocationRules:
    """The layout of a table's data files: `context` begins names below another folder, `object_storage` puts a hash
    before names, and `partitioned_paths` the partition behind that."""

    folder: str
    context: str | None
    object_storage: bool
    partitioned_paths: bool

    @classmethod
    def of(cls, table_location: str, properties: Mapping[str, str]) -> LocationRules:
        root = table_location.rstrip("/")
        object_storage = OBJECT_STORAGE_ENABLED.of(properties)
        deprecated = _DEPRECATED_PATHS if object_storage else _DEPRECATED_PATHS[1:]
        given = (each.of(properties) for each in (DATA_PATH, *deprecated))
        folder = next((path for path in given if path), f"{root}/data").rstrip("/")
        context = None if folder.startswith(root) else "/".join(root.rsplit("/", 2)[-2:])
        return cls(folder, context, object_storage, OBJECT_STORAGE_PARTITIONED_PATHS.of(properties))

    def location(self, partition_path: str, name: str) -> str:
        """The location of a file name in a partition's folder, such as `day=2026-01-31`, empty without partitions."""
        if not self.object_storage:
            return "/".join(part for part in (self.folder, partition_path, name) if part)
        if partition_path and self.partitioned_paths:
            name = f"{partition_path}/{name}"
        entropy = _entropy(name)
        if self.context is not None:
            return f"{self.folder}/{entropy}/{self.context}/{name}"
        return f"{self.folder}/{entropy}{'/' if self.partitioned_paths else '-'}{name}"


class DataLocations:
    """Names the files of one write: `operation_id` is part of every name, `suffix` stands before the extension."""

    def __init__(
        self,
        table_location: str,
        properties: Mapping[str, str],
        operation_id: str | None = None,
        suffix: str | None = None,
    ) -> None:
        self._rules = LocationRules.of(table_location, properties)
        self._operation_id = operation_id or str(uuid.uuid4())
        self._suffix = f"-{suffix}" if suffix else ""
        self._count = 0
        self._lock = threading.Lock()

    def next(self, partition_path: str, extension: str = "parquet") -> str:
        """The location of the next file in a partition's escaped path, such as `a=1/b=x`, empty without partitions."""
        with self._lock:
            self._count += 1
            number = self._count
        name = f"00000-0-{self._operation_id}-{number:05d}{self._suffix}.{extension}"
        return self._rules.location(partition_path, name)


def data_location(table_location: str, properties: Mapping[str, str], partition_path: str, name: str) -> str:
    """The location of one data file in a partition's escaped path, such as `a=1/b=x`."""
    return LocationRules.of(table_location, properties).location(partition_path, name)


def _entropy(name: str) -> str:
    """Twenty bits of the name's hash as folders of 4, 4, 4 and 8 digits, so that a store spreads its load."""
    bits = format(mmh3.hash(name, 0, signed=False) & ((1 << _ENTROPY_BITS) - 1), f"0{_ENTROPY_BITS}b")
    return f"{bits[0:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}"
