"""Metadata files by their locations, as a server has told them, or as a commit has prepared them.

A REST catalog reads and writes metadata files itself, and clients need not be able to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

_MOST = 64


class Documents:
    """A cache of metadata files by location; they never change, so a cached one is always right."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, bytes] = OrderedDict()
        self._prepared: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def tell(self, location: str, content: bytes) -> None:
        """Keeps a metadata file that a server sent."""
        with self._lock:
            self._told[location] = content
            self._told.move_to_end(location)
            while len(self._told) > _MOST:
                self._told.popitem(last=False)

    def prepare(self, location: str, content: bytes) -> None:
        """Keeps a metadata file that a commit has prepared, until `forget`."""
        with self._lock:
            self._prepared[location] = content

    def is_prepared(self, location: str) -> bool:
        """Whether a commit has prepared it, so that there is no such file."""
        with self._lock:
            return location in self._prepared

    def forget(self, location: str) -> bool:
        """Removes a metadata file that a commit has prepared; returns whether there was one."""
        with self._lock:
            return self._prepared.pop(location, None) is not None

    def get(self, location: str) -> bytes | None:
        """The content, if it is known."""
        with self._lock:
            found = self._told.get(location)
            return self._prepared.get(location) if found is None else found
