"""The places of very many files that a table names, in eight bytes each, and which listed files are among them.

A place is kept as a hash. Two that have the same are taken for one: then a file that nobody names stays, and never goes
one that is named.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import numpy as np

from hms_iceberg.spec.places import Place
from hms_iceberg.storage import FileInfo, Places


class Match(Enum):
    """Whether a table names a file."""

    SAME = "by its place"
    ELSEWHERE = "by its path, on another server or below another folder"
    NONE = "no"


class NamedPlaces:
    """The files that a table names: a folder is taken apart once, not each of its files.

    Attributes:
        is_in_root: one of those in the folder that is searched; empty if there is none.
    """

    def __init__(self, locations: Iterable[str], places: Places, root: Place) -> None:
        self._places = places
        self._root = root
        self.is_in_root = ""
        self._folders: dict[Place, int] = {}
        hashes, outside = array("q"), array("q")
        for location in locations:
            folder, name = places.folder_and_name(location)
            of_folder = self._folders.get(folder)
            if of_folder is None:
                of_folder = self._folders[folder] = hash(folder)
                if not self.is_in_root and folder.is_in(root):
                    self.is_in_root = location
            hashes.append(hash((of_folder, name)))
            if not folder.is_in(root):
                outside.append(hash(name))
        self._hashes, self._outside_names = _sorted(hashes), _sorted(outside)
        self._anywhere: dict[Place, list[Place]] = {}
        for folder in self._folders:
            self._anywhere.setdefault(folder.anywhere(), []).append(folder)
        self._outside = [folder for folder in self._folders if not folder.is_in(root)]

    def has(self, files: Sequence[FileInfo]) -> list[bool]:
        """Which files are named by their place."""
        asked = array("q")
        for file in files:
            folder, name = self._places.folder_and_name(file.location)
            asked.append(hash((self._folders.get(folder), name)))
        found: list[bool] = _among(np.frombuffer(asked, np.int64), self._hashes).tolist()
        return found

    def matches(self, files: Sequence[FileInfo]) -> Iterator[Match]:
        """Whether the table names files that were listed.

        Of a folder that has another name in the metadata than in the listing (one disk that is mounted twice, a
        gateway), the files' paths below it tell.
        """
        for file, is_same in zip(files, self.has(files), strict=True):
            yield Match.SAME if is_same else self._elsewhere(file.location)

    def _elsewhere(self, location: str) -> Match:
        folder, name = self._places.folder_and_name(location)
        if any(self._is_in(other, name) for other in self._anywhere.get(folder.anywhere(), ())):
            return Match.ELSEWHERE
        if not _holds(self._outside_names, hash(name)):
            return Match.NONE
        below = f"/{folder.below(self._root)}" if folder.path != self._root.path else ""
        is_outside = any(other.path.endswith(below) and self._is_in(other, name) for other in self._outside)
        return Match.ELSEWHERE if is_outside else Match.NONE

    def _is_in(self, folder: Place, name: str) -> bool:
        return _holds(self._hashes, hash((self._folders[folder], name)))


def _sorted(hashes: array[int]) -> np.ndarray:
    found = np.frombuffer(hashes, np.int64) if hashes else np.empty(0, np.int64)
    found.sort()
    return found


def _among(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    if not len(ordered):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[places] == values)


def _holds(ordered: np.ndarray, value: int) -> bool:
    place = int(np.searchsorted(ordered, value))
    return place < len(ordered) and int(ordered[place]) == value
