"""Compaction: small files become large ones, deletes are applied, rows are sorted.

Source: Iceberg documentation, "Spark Procedures", `rewrite_data_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hms_iceberg.arrow.writing.write import TARGET_FILE_BYTES
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.maintenance.dangling_deletes import remove_dangling_deletes
from hms_iceberg.maintenance.rewrite.groups import FileGroup
from hms_iceberg.maintenance.rewrite.layout import layout_of
from hms_iceberg.maintenance.rewrite.local_engine import LocalEngine
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.rewrite.plan import RewritePlan, plan_rewrite
from hms_iceberg.maintenance.rewrite.run import GroupRun, Replaced, workers_for
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.spec.snapshots import MAIN_BRANCH
from hms_iceberg.spec.sorting import SortOrder
from hms_iceberg.spec.table_properties import int_property
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.snapshot_writer import parent_on


class Engine(Protocol):
    """Writes the rows of a group of files anew."""

    def rewrite(self, group: FileGroup[FileScanTask], on_create: Callable[[str], None]) -> tuple[DataFile, ...]:
        """Writes a group's live rows to new files.

        Args:
            group: the files with their deletes.
            on_create: called with each location before, or as soon as, the file is made: a failure deletes it.
        """
        ...


@dataclass(frozen=True)
class RewriteResult:
    """What a rewriting of data files did.

    Attributes:
        plan: what was to be done.
        rewritten_data_files_count: data files that were replaced.
        added_data_files_count: data files that take their place.
        rewritten_bytes_count: bytes of the files that were replaced.
        failed_data_files_count: data files of groups that could not be rewritten or committed; they are as they were.
        removed_delete_files_count: delete files that went, as they applied to nothing any more.
        failures: why groups failed.
    """

    plan: RewritePlan
    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    failures: tuple[str, ...] = ()


def rewrite_data_files(
    table: Table,
    *,
    strategy: str = "binpack",
    sort_order: str | SortOrder | None = None,
    where: str | BooleanExpression | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
    dry_run: bool = False,
    engine: Engine | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> RewriteResult:
    """Replaces data files by fewer, larger or better sorted ones with the same rows.

    Deletes are applied, row ids and sequence numbers of rows are kept. Groups of files are committed as they are done
    (`partial-progress.enabled`, true unless an option says otherwise), so that an interrupted run loses only what it
    was at, and a conflict only the groups that it is about. A concurrent writer is never made to fail but where the
    format leaves no other way: where it deletes single rows of a file that was replaced.

    Args:
        table: the table, which moves to its newest version.
        strategy: `binpack` puts files together as they are; `sort` sorts rows.
        sort_order: for `sort`, such as `id desc nulls last, bucket(4, name)` or `zorder(a, b)`; the table's by default.
        where: only files that may hold matching rows.
        options: Apache Iceberg's, by name; see `hms_iceberg.maintenance.rewrite.options`.
        branch: the branch to rewrite.
        case_sensitive: how names of columns are matched.
        dry_run: only plan.
        engine: what reads and writes files; by default this process, with Arrow.
        stop: asked before each group; True leaves what is not begun for another run.

    Raises:
        InvalidInputError: an option, the strategy or the order is none, or the branch does not exist.
        ExpressionParseError, UnknownColumnError, TypeMismatchError: the filter or the order does not fit the table.
        CommitConflictError, CommitFailedError: without partial progress, a concurrent change or other writers were in
            the way; nothing was changed. With it, more commits failed than `partial-progress.max-failed-commits`.
        CommitStateUnknownError: nobody can tell whether a group was committed; no file was deleted.
        MissingFileError, CorruptDataFileError, StorageError: without partial progress, a file cannot be read or
            written.
    """
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    layout = layout_of(metadata, strategy, sort_order, name, case_sensitive)
    given = RewriteOptions(options, f"rewrite_data_files ({strategy})", name)
    given.refuse_others(sorts=layout.sorts, zorder=bool(layout.zorder))
    sizes = given.sizes(int_property(metadata.properties, TARGET_FILE_BYTES))
    commits, rules = given.commits(), given.data_files()
    specs = sorted(each.spec_id for each in metadata.partition_specs)
    if rules.output_spec_id is not None and rules.output_spec_id not in specs:
        raise InvalidInputError(
            f"Cannot rewrite the data files of table {name}: output-spec-id {rules.output_spec_id} is none of its "
            f"partition specs, {specs}."
        )
    if branch != MAIN_BRANCH and branch not in metadata.refs:
        raise InvalidInputError(f"Cannot rewrite the data files of branch {branch} of table {name}: no such branch.")
    snapshot = parent_on(metadata, branch)
    row_filter = parse(where) if isinstance(where, str) else where or AlwaysTrue()
    plan = plan_rewrite(metadata, snapshot, table.storage, sizes, rules, row_filter, case_sensitive)
    if dry_run or snapshot is None:
        return RewriteResult(plan)
    workers = workers_for(commits, len(plan.groups))
    chosen = engine or LocalEngine(metadata, table.storage, name, layout, plan.output_spec_id, workers)
    number = snapshot.sequence_number if rules.use_starting_sequence_number and metadata.format_version > 1 else None

    def write(group: FileGroup[FileScanTask], on_create: Callable[[str], None]) -> Replaced:
        return Replaced(tuple(task.file for task in group.items), chosen.rewrite(group, on_create))

    run = GroupRun(table, write, commits, branch, number, stop)
    run.rewrite(plan.groups, workers)
    table.refresh()
    removed = run.removed_deletes
    if rules.remove_dangling_deletes:
        removed += len(remove_dangling_deletes(table, branch=branch))
    return RewriteResult(
        plan,
        rewritten_data_files_count=sum(len(each.group.items) for each in run.committed),
        added_data_files_count=sum(len(each.replaced.added) for each in run.committed),
        rewritten_bytes_count=sum(each.group.input_bytes for each in run.committed),
        failed_data_files_count=sum(len(group.items) for group, _ in run.failed),
        removed_delete_files_count=removed,
        failures=tuple(reason for _, reason in run.failed),
    )
