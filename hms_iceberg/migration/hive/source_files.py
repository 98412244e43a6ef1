"""The data files of a Hive table, as Hive and Spark see them.

Names that start with `_` or `.` are hidden, empty files hold nothing, and a partition's files are those in its own
location, wherever that is. Source: Apache Hive, `FileUtils.HIDDEN_FILES_PATH_FILTER`; Apache Spark,
`HadoopFSUtils.shouldFilterOutPathName`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hms_iceberg.migration.migration_progress import LISTING, Progress, in_threads
from hms_iceberg.storage import FileInfo, Storage

_ACID_FOLDER = re.compile(r"/(?:base|delta|delete_delta)_\d{7,}(?:_\d+)*/[^/]+$")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One data file: where it is, its size in bytes, when it changed, and the number of its partition."""

    location: str
    size: int
    modified_ms: int
    partition: int


@dataclass(frozen=True)
class Listing:
    """The data files of a table at one time.

    Attributes:
        files: the files that hold rows.
        empty: how many files of no bytes were left out.
        in_subdirectories: an example of a file below a partition's directory rather than in it, None if there is
            none; Hive and Spark do not agree on those.
        shared: an example of a file that is in two partitions, None if there is none.
        transactional: an example of a file in a folder of a transactional (ACID) table, None if there is none.
    """

    files: tuple[SourceFile, ...]
    empty: int
    in_subdirectories: str | None
    shared: str | None
    transactional: str | None = None

    @property
    def total_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.size for file in self.files)


def list_files(storage: Storage, locations: Sequence[str], threads: int, progress: Progress) -> Listing:
    """List the files of each partition.

    Args:
        storage: where the files are.
        locations: the directory of each partition (or of the table); an absent one holds no files.
        threads: how many directories are listed at once.
        progress: told how many are listed.
    """
    files: list[SourceFile] = []
    empty, below = 0, None
    listed = in_threads(lambda location: _visible(storage, location), locations, threads)
    for partition, found in enumerate(listed):
        location = locations[partition].rstrip("/")
        for info in found:
            if info.size == 0:
                empty += 1
                continue
            files.append(SourceFile(info.location, info.size, info.modified_ms, partition))
            if "/" in info.location[len(location) + 1 :]:
                below = below or info.location
        progress(LISTING, partition + 1, len(locations))
    acid = next((file.location for file in files if _ACID_FOLDER.search(file.location)), None) if below else None
    return Listing(tuple(files), empty, below, _first_twice(file.location for file in files), acid)


def _visible(storage: Storage, location: str) -> list[FileInfo]:
    root = location.rstrip("/")
    return [info for info in storage.list(root) if not _is_hidden(info.location[len(root) + 1 :])]


def _is_hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _first_twice(locations: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for location in locations:
        if location in seen:
            return location
        seen.add(location)
    return None
