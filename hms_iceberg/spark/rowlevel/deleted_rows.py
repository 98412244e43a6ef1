"""Positions of deleted rows, as the tasks of Spark collected them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyroaring

from hms_iceberg.arrow.deletes.deleted_rows import PositionDeletes
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.reading.row_rewrites import earlier_positions
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.storage import Storage


@dataclass(frozen=True)
class DeletedRows:
    """Deleted rows of one data file; what `write_row_deletes` takes."""

    file: DataFile
    count: int  # how many of the rows were live
    # of all deleted rows, also of earlier; a `pyroaring.BitMap64`, never larger than a bit for each row of the file
    positions: Any

    def __len__(self) -> int:
        return self.count

    def merged(self) -> Any:
        """All positions, ascending."""
        return np.frombuffer(self.positions.to_array(), np.uint64).astype(np.int64)


def bitmaps(deleted: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """Deleted positions of all tasks, by data file; several tasks may have read parts of one file. Each has the file's
    `path` and the `positions`: the portable form of a 64-bit Roaring bitmap, in base64."""
    found: dict[str, Any] = {}
    for each in deleted:
        positions = pyroaring.BitMap64.deserialize(base64.b64decode(each["positions"]))
        known = found.get(each["path"])
        found[each["path"]] = positions if known is None else known | positions
    return found


def merged_deletes(
    storage: Storage, tasks: Sequence[FileScanTask], deleted: Mapping[str, Any], format_version: int
) -> tuple[list[DeletedRows], list[DataFile]]:
    """The rows of each data file that are deleted, old ones too; and the delete files not needed any more."""
    deletes = PositionDeletes(storage)

    def merge(task: FileScanTask) -> tuple[DeletedRows, tuple[DataFile, ...]]:
        earlier, obsolete = earlier_positions(storage, task, format_version, deletes)
        new = deleted[task.file.file_path]
        count = len(new)
        if earlier is not None:
            new = new | pyroaring.BitMap64(np.asarray(earlier, np.uint64))
        return DeletedRows(task.file, count, new), obsolete

    if not tasks:
        return [], []
    remote = not parse_location(tasks[0].file.file_path).is_local
    with ThreadPoolExecutor(default_workers(len(tasks), remote), thread_name_prefix="iceberg-deletes") as pool:
        merged = list(pool.map(merge, tasks))
    return [rows for rows, _ in merged], [file for _, obsolete in merged for file in obsolete]
