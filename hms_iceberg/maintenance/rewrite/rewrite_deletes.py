"""Rewriting position deletes: small files put together or made vectors, dangling ones removed.

Source: Iceberg documentation, "Spark Procedures", `rewrite_position_delete_files`; Iceberg specification, "Deletion
Vectors": from format version 3 on no position delete file is added, and a vector replaces those of its data file;
Iceberg documentation, "Spark Procedures", `remove-dangling-deletes`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, write_row_deletes
from hms_iceberg.arrow.deletes.deleted_rows import PositionDeletes, read_position_deletes
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.maintenance.rewrite.commits import GroupCommits, Replaced, rewrite_groups, workers_for
from hms_iceberg.maintenance.rewrite.file_groups import FileGroup, in_job_order, is_worth_it, limited
from hms_iceberg.maintenance.rewrite.options import RewriteOptions, SizeRules
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.splitting import packed
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestContent, PartitionKey
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot
from hms_iceberg.spec.table_properties import DELETE_TARGET_FILE_BYTES
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.file_matching import FileMatcher
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles


@dataclass(frozen=True)
class DeleteRewriteResult:
    """The result of rewriting position deletes.

    Attributes:
        groups: what was to be rewritten.
        rewritten_delete_files_count: delete files that went.
        added_delete_files_count: delete files and vectors that took their place.
        rewritten_bytes_count: bytes of the files that went.
        added_bytes_count: bytes of those that came; of a vector its own.
        failures: why groups failed; they are as they were.
    """

    groups: tuple[FileGroup[DataFile], ...]
    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    failures: tuple[str, ...] = ()


def rewrite_position_delete_files(
    table: Table,
    *,
    where: str | BooleanExpression | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
    dry_run: bool = False,
) -> DeleteRewriteResult:
    """Replaces position delete files by fewer ones, from format version 3 on by deletion vectors.

    Deletes of rows in data files that are gone are left out. The table's rows stay what they are.

    Args:
        table: the table, which moves to its newest version.
        where: only delete files of partitions that may hold matching rows.
        options: Apache Iceberg's, by name; see `hms_iceberg.maintenance.rewrite.options`. From format version 3 on all
            position delete files count as too many.
        branch: the branch to rewrite.
        case_sensitive: how names of columns are matched.
        dry_run: only plan.

    Returns:
        the groups, and counts of files and bytes that were replaced; with `dry_run`, the groups alone.

    Raises:
        InvalidInputError: an option is unknown or wrong, or the branch does not exist.
        ExpressionParseError, UnknownColumnError, TypeMismatchError: the filter does not fit the table.
        CommitConflictError, CommitFailedError, CommitStateUnknownError: as of `rewrite_data_files`.
    """
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    given = RewriteOptions(options, "rewrite_position_delete_files", name)
    given.refuse_others(data=False)
    sizes, commits = given.sizes(DELETE_TARGET_FILE_BYTES.of(metadata.properties)), given.commits()
    if branch != MAIN_BRANCH and branch not in metadata.refs:
        raise InvalidInputError(f"Cannot rewrite the deletes of branch {branch} of table {name}: no such branch.")
    snapshot = parent_on(metadata, branch)
    row_filter = parse(where) if isinstance(where, str) else where
    matcher = None if row_filter is None else FileMatcher(metadata, row_filter, case_sensitive)
    if snapshot is None:
        return DeleteRewriteResult(())
    rewriter = _Rewriter(metadata, snapshot, table.storage)
    groups = _planned(rewriter, snapshot, sizes, matcher)
    if dry_run or not groups:
        return DeleteRewriteResult(groups)
    run = GroupCommits(table, commits, branch)
    rewrite_groups(run, groups, rewriter.rewrite, workers_for(commits, len(groups)))
    table.refresh()
    removed = [file for each in run.committed for file in each.replaced.removed]
    added = [file for each in run.committed for file in each.replaced.added]
    return DeleteRewriteResult(
        groups,
        rewritten_delete_files_count=len(removed),
        added_delete_files_count=len(added),
        rewritten_bytes_count=sum(file.content_bytes for file in removed),
        added_bytes_count=sum(file.content_bytes for file in added),
        failures=tuple(reason for _, reason in run.failed),
    )


def _planned(
    rewriter: _Rewriter, snapshot: Snapshot, sizes: SizeRules, matcher: FileMatcher | None
) -> tuple[FileGroup[DataFile], ...]:
    metadata = rewriter.metadata
    partitions: dict[PartitionKey, list[DataFile]] = {}
    for file in live_deletes(snapshot, rewriter.storage):
        if file.content is not DataFileContent.POSITION_DELETES or file.is_deletion_vector:
            continue
        if matcher is None or matcher.may_match_partition(file):
            partitions.setdefault(rewriter.home(file), []).append(file)
    every = sizes.rewrite_all or metadata.format_version >= 3
    runs = (
        run
        for files in partitions.values()
        for run in packed(
            (file for file in files if every or sizes.is_outside(file.file_size_in_bytes)),
            lambda file: file.file_size_in_bytes,
            sys.maxsize if metadata.format_version >= 3 else sizes.max_group_bytes,  # a data file gets one vector
            sys.maxsize if metadata.format_version >= 3 else sizes.max_group_files,
        )
        if every or is_worth_it([file.file_size_in_bytes for file in run], sizes)
    )
    groups = [_group(metadata, run, sizes) for run in limited(runs, sizes.max_files)]
    return in_job_order(groups, sizes.job_order)


def _group(metadata: TableMetadata, files: list[DataFile], sizes: SizeRules) -> FileGroup[DataFile]:
    spec = metadata.spec_by_id(files[0].spec_id)
    schema = metadata.schema_for_spec(spec)
    path = "" if spec.is_unpartitioned() else spec.partition_to_path(files[0].partition, schema)
    size = sum(file.file_size_in_bytes for file in files)
    return FileGroup(path, tuple(files), size, sizes.output_bytes(size), sizes.output_files(size))


def live_deletes(snapshot: Snapshot | None, storage: Storage) -> list[DataFile]:
    return [
        entry.data_file
        for manifest in manifest_list_of(snapshot, storage)
        if manifest.content is ManifestContent.DELETES and manifest.has_live_files()
        for entry in entries_of(manifest, storage)
        if entry.is_live
    ]


class _Rewriter:
    def __init__(self, metadata: TableMetadata, snapshot: Snapshot, storage: Storage) -> None:
        self.metadata = metadata
        self.storage = storage
        plan = plan_scan(ScanRequest(metadata, snapshot.snapshot_id, schema=metadata.schema()), storage)
        self._data = {task.file.file_path: task for task in plan.tasks()}
        # A delete of a row of another partition, or of a newer file, applies to nothing: written anew, it would.
        self._applied = {(path, file.file_path) for path, task in self._data.items() for file in task.delete_files}
        self._positions = PositionDeletes(storage)

    def home(self, file: DataFile) -> PartitionKey:
        """The partition of the files whose rows a delete file deletes: so all deletes of a data file go together."""
        named = self._data.get(file.only_data_file or "")
        return file.partition_key if named is None else named.file.partition_key

    def rewrite(self, group: FileGroup[DataFile], on_create: Callable[[str], None]) -> Replaced:
        """The group's deletes of rows in the data files that they apply to."""
        positions: dict[str, list[Any]] = {}
        for file in group.items:
            for path, found in read_position_deletes(self.storage, file).items():
                if (path, file.file_path) in self._applied:
                    positions.setdefault(path, []).append(found)
        if self.metadata.format_version >= 3:
            deleted = [each for path in positions for each in self._vector(path)]
        else:
            deleted = [
                DeletedPositions(self._data[path].file, np.unique(np.concatenate(found)))
                for path, found in positions.items()
            ]
        return Replaced(tuple(group.items), tuple(write_row_deletes(self.metadata, self.storage, deleted, on_create)))

    def _vector(self, path: str) -> Iterator[DeletedPositions]:
        """All deletes of a data file, as its vector hides every position delete file; none if it has one already."""
        task = self._data[path]
        deletes = [file for file in task.delete_files if file.content is DataFileContent.POSITION_DELETES]
        if any(file.is_deletion_vector for file in deletes):
            return
        found = self._positions.positions(path, deletes)
        if found is not None:
            yield DeletedPositions(task.file, found)


def dangling_deletes(metadata: TableMetadata, storage: Storage, branch: str = MAIN_BRANCH) -> tuple[DataFile, ...]:
    """The delete files and deletion vectors of a branch that apply to no data file, by the rules that a scan is planned
    with."""
    snapshot = parent_on(metadata, branch)
    if snapshot is None:
        return ()
    live = [
        entry.data_file
        for manifest in manifest_list_of(snapshot, storage)
        if manifest.content is ManifestContent.DELETES and manifest.has_live_files()
        for entry in entries_of(manifest, storage)
        if entry.is_live
    ]
    if not live:
        return ()
    request = ScanRequest(metadata, snapshot.snapshot_id, schema=metadata.schema())
    plan = plan_scan(request, storage)
    # A Puffin file holds the vectors of several data files: a vector is known by both.
    applied = {
        (path, about if file_format.upper() == "PUFFIN" else None)
        for path, about, file_format in plan.delete_files.select(
            "file_path", "referenced_data_file", "file_format"
        ).iter_rows()
    }
    return tuple(
        file
        for file in live
        if (file.file_path, file.referenced_data_file if file.is_deletion_vector else None) not in applied
    )


def remove_dangling_deletes(table: Table, *, branch: str = MAIN_BRANCH) -> tuple[DataFile, ...]:
    """Removes delete files that apply to nothing from a table, in a commit of its own if there are any.

    Args:
        table: the table, which moves to its newest version.
        branch: the branch.

    Returns:
        The files that were removed from the table; expiry of snapshots deletes them.

    Raises:
        CommitConflictError: somebody else removed one of them.
        CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
    """
    metadata = table.refresh().metadata
    found = dangling_deletes(metadata, table.storage, branch)
    if found:
        with table.transaction() as transaction:
            transaction.add(RewriteFiles(removed=found, branch=branch))
    return found
