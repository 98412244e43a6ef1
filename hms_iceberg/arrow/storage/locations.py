"""Where new data files go, and what they are called: the layouts of Iceberg Java.

Source: Iceberg documentation, "Configuration" (``write.data.path``, ``write.object-storage.*``).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping

import mmh3

from hms_iceberg.spec.table_properties import bool_property

_ENTROPY_BITS = 20
_DEPRECATED_PATHS = ("write.object-storage.path", "write.folder-storage.path")
_OBJECT_STORAGE = ("write.object-storage.enabled", False)
_PARTITIONED_PATHS = ("write.object-storage.partitioned-paths", True)


class DataLocations:
    """Names the files that one write makes.

    Args:
        table_location: the table's location.
        properties: the table's properties.
        operation_id: part of every name; drawn unless given.
        suffix: what stands before the extension, such as ``deletes``.
    """

    def __init__(
        self,
        table_location: str,
        properties: Mapping[str, str],
        operation_id: str | None = None,
        suffix: str | None = None,
    ) -> None:
        self._layout = _Layout(table_location, properties)
        self._operation_id = operation_id or str(uuid.uuid4())
        self._suffix = f"-{suffix}" if suffix else ""
        self._count = 0
        self._lock = threading.Lock()

    def next(self, partition_path: str, extension: str = "parquet") -> str:
        """The location of the next file.

        Args:
            partition_path: such as ``a=1/b=x``, escaped; empty where the table is not partitioned.
            extension: of the file name, without the dot.
        """
        with self._lock:
            self._count += 1
            number = self._count
        name = f"00000-0-{self._operation_id}-{number:05d}{self._suffix}.{extension}"
        return self._layout.location(partition_path, name)


def data_location(table_location: str, properties: Mapping[str, str], partition_path: str, name: str) -> str:
    """The location of one data file.

    Args:
        table_location: the table's location.
        properties: the table's properties.
        partition_path: such as ``a=1/b=x``, escaped; empty where the table is not partitioned.
        name: the file's name.
    """
    return _Layout(table_location, properties).location(partition_path, name)


class _Layout:
    """Folders of data files, by the properties of a table."""

    def __init__(self, table_location: str, properties: Mapping[str, str]) -> None:
        root = table_location.rstrip("/")
        self._object_storage = bool_property(properties, _OBJECT_STORAGE)
        self._partitioned_paths = bool_property(properties, _PARTITIONED_PATHS)
        deprecated = _DEPRECATED_PATHS if self._object_storage else _DEPRECATED_PATHS[1:]
        given = (properties.get(name) for name in ("write.data.path", *deprecated))
        self._folder = next((path for path in given if path), f"{root}/data").rstrip("/")
        self._context = None if self._folder.startswith(root) else "/".join(root.rsplit("/", 2)[-2:])

    def location(self, partition_path: str, name: str) -> str:
        """Where a file of this name goes."""
        if not self._object_storage:
            return "/".join(part for part in (self._folder, partition_path, name) if part)
        if partition_path and self._partitioned_paths:
            name = f"{partition_path}/{name}"
        entropy = _entropy(name)
        if self._context is not None:
            return f"{self._folder}/{entropy}/{self._context}/{name}"
        return f"{self._folder}/{entropy}{'/' if self._partitioned_paths else '-'}{name}"


def _entropy(name: str) -> str:
    """Twenty bits of the name's hash as folders of 4, 4, 4 and 8 digits, so that a store spreads its load."""
    bits = format(mmh3.hash(name, 0, signed=False) & ((1 << _ENTROPY_BITS) - 1), f"0{_ENTROPY_BITS}b")
    return f"{bits[0:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}"
