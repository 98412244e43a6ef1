"""Equality deletes turned into position deletes or deletion vectors, which every reader applies at less cost.

No row of the table changes. Each data file that a delete may reach is read once, its key columns only; a delete file is
removed once every data file that it reached has the positions. Deletes that come meanwhile keep applying, and are what
the next run looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, write_row_deletes
from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.arrow.reading.row_rewrites import RowRewriter, earlier_positions, positions_of
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.rewrite.commits import GroupCommits, Replaced, rewrite_groups, workers_for
from hms_iceberg.maintenance.rewrite.file_groups import FileGroup
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.rewrite.rewrite_deletes import live_deletes
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import FileScanTask, ScanRequest
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.new_snapshot import parent_on


@dataclass(frozen=True)
class ConversionResult:
    """The result of converting equality deletes.

    Attributes:
        groups: the equality delete files that were found, those of a partition together.
        converted_equality_delete_files_count: equality delete files that are gone.
        added_delete_files_count: position delete files or deletion vectors that took their place.
        deleted_rows: rows that the new files delete, those of earlier deletes that they repeat included.
        failures: why groups failed; they are as they were.
    """

    groups: tuple[FileGroup[DataFile], ...]
    converted_equality_delete_files_count: int = 0
    added_delete_files_count: int = 0
    deleted_rows: int = 0
    failures: tuple[str, ...] = ()


def convert_equality_deletes(
    table: Table,
    *,
    options: Mapping[str, Any] | None = None,
    branch: str = MAIN_BRANCH,
    dry_run: bool = False,
) -> ConversionResult:
    """Replaces the equality deletes of a table by position deletes (format version 2) or deletion vectors (3).

    Args:
        table: the table, which moves to its newest version.
        options: `max-concurrent-file-group-rewrites` and `partial-progress.*`, as of `rewrite_data_files`.
        branch: the branch whose deletes are converted.
        dry_run: only look for them.

    Returns:
        the groups, and counts of what was converted; with `dry_run`, the groups alone.

    Raises:
        InvalidInputError: an option is unknown or wrong, or the branch does not exist.
        CommitConflictError, CommitFailedError, CommitStateUnknownError: as of `rewrite_data_files`. A conflict is a
            concurrent change that removed a data file with deleted rows, or gave it a deletion vector.
    """
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    given = RewriteOptions(options, "convert_equality_deletes", name)
    given.refuse_others(data=False)
    commits = given.commits()
    if branch != MAIN_BRANCH and branch not in metadata.refs:
        raise InvalidInputError(f"Cannot convert the deletes of branch {branch} of table {name}: no such branch.")
    snapshot = parent_on(metadata, branch)
    groups = _planned(metadata, snapshot, table.storage)
    if dry_run or not groups or snapshot is None:
        return ConversionResult(groups)
    converter = _DeleteConverter(metadata, snapshot, table.storage)
    run = GroupCommits(table, commits, branch)
    rewrite_groups(run, groups, converter.convert, workers_for(commits, len(groups)))
    table.refresh()
    added = [file for each in run.committed for file in each.replaced.added]
    return ConversionResult(
        groups,
        converted_equality_delete_files_count=sum(len(each.group.items) for each in run.committed),
        added_delete_files_count=len(added),
        deleted_rows=sum(file.record_count for file in added),
        failures=tuple(reason for _, reason in run.failed),
    )


def _planned(metadata: TableMetadata, snapshot: Snapshot | None, storage: Storage) -> tuple[FileGroup[DataFile], ...]:
    """The equality deletes of each partition; all together if some apply to every partition."""
    found = [file for file in live_deletes(snapshot, storage) if file.content is DataFileContent.EQUALITY_DELETES]
    groups: dict[tuple[int, str], list[DataFile]] = {}
    everywhere = any(metadata.spec_by_id(file.spec_id).is_unpartitioned() for file in found)
    for file in found:
        groups.setdefault((0, "") if everywhere else (file.spec_id, repr(file.partition)), []).append(file)
    return tuple(_group(metadata, files, everywhere) for files in groups.values())


def _group(metadata: TableMetadata, files: Sequence[DataFile], everywhere: bool) -> FileGroup[DataFile]:
    path = ""
    if not everywhere:
        spec = metadata.spec_by_id(files[0].spec_id)
        path = spec.partition_to_path(files[0].partition, metadata.schema_for_spec(spec))
    size = sum(file.file_size_in_bytes for file in files)
    return FileGroup(path, tuple(files), size, size, len(files))


class _DeleteConverter:
    def __init__(self, metadata: TableMetadata, snapshot: Snapshot, storage: Storage) -> None:
        self._metadata = metadata
        self._storage = storage
        self._rewriter = RowRewriter(metadata, storage)
        self._context = self._rewriter.context(Schema())
        plan = plan_scan(ScanRequest(metadata, snapshot.snapshot_id, schema=metadata.schema()), storage)
        self._tasks: dict[str, list[FileScanTask]] = {}
        for task in plan.with_deletes().tasks():
            for file in task.delete_files:
                if file.content is DataFileContent.EQUALITY_DELETES:
                    self._tasks.setdefault(file.file_path, []).append(task)

    def convert(self, group: FileGroup[DataFile], on_create: Callable[[str], None]) -> Replaced:
        """The positions that a group's deletes delete, as files, in the place of the group's."""
        tasks = {task.file.file_path: task for file in group.items for task in self._tasks.get(file.file_path, ())}
        found = in_parallel(self._deleted, tasks.values(), self._metadata.location)
        deleted = [each for each in found if each is not None]
        obsolete = [file for _, repeated in deleted for file in repeated]
        positions = [each for each, _ in deleted]
        written = write_row_deletes(self._metadata, self._storage, positions, on_create)
        referenced = frozenset(each.file.file_path for each in positions)
        return Replaced((*group.items, *obsolete), tuple(written), referenced)

    def _deleted(self, task: FileScanTask) -> tuple[DeletedPositions, tuple[DataFile, ...]] | None:
        """The rows of a data file that equality deletes delete, and earlier deletes that the new ones repeat."""
        positions = self._deleted_by_key(task)
        if not len(positions):
            return None
        earlier, repeated = earlier_positions(self._storage, task, self._metadata.format_version)
        return DeletedPositions(task.file, positions, earlier), repeated

    def _deleted_by_key(self, task: FileScanTask) -> Any:
        """Positions of rows that equality deletes delete and nothing else does."""
        by_key, others, numbers = [], [], []
        for file, number in zip(task.delete_files, task.delete_sequence_numbers, strict=True):
            if file.content is DataFileContent.EQUALITY_DELETES:
                by_key.append(file)
            else:
                others.append(file)
                numbers.append(number)
        remaining = FileScanTask.of(
            task.file,
            others,
            data_sequence_number=task.data_sequence_number,
            file_sequence_number=task.file_sequence_number,
            delete_sequence_numbers=numbers,
            snapshot_id=task.snapshot_id,
        )
        parts = [positions_of(batch) for batch in read_task(self._context, remaining, by_key)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)
