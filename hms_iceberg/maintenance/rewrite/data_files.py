"""Compaction: small files become large ones, deletes are applied, rows are sorted.

Source: Iceberg documentation, "Spark Procedures", `rewrite_data_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.maintenance.rewrite.commits import GroupCommits
from hms_iceberg.maintenance.rewrite.layout import layout_of
from hms_iceberg.maintenance.rewrite.local_engine import LocalEngine
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.rewrite.rewrite_plan import plan_rewrite
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite, Engine, RewriteResult
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import TARGET_FILE_BYTES
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.content import parent_on


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
        engine: what reads and writes files; by default this process, with Arrow. `hms_iceberg.spark.SparkEngine` is
            another.
        stop: asked before each group; True leaves what is not begun for another run.

    Returns:
        the plan, and counts of files and bytes that were replaced; with `dry_run`, the plan alone.

    Raises:
        InvalidInputError: an option, the strategy or the order is none, or the branch does not exist.
        ExpressionParseError, UnknownColumnError, TypeMismatchError: the filter or the order does not fit the table.
        CommitConflictError, CommitFailedError: without partial progress, a concurrent change or other writers were in
            the way; nothing was changed. With it, more commits failed than `partial-progress.max-failed-commits`.
        CommitStateUnknownError: nobody can tell whether a group was committed; no file was deleted.
        MissingFileError, CorruptDataFileError, StorageError: without partial progress, a file cannot be read or
            written.
    """
    planned = plan_data_files(
        table,
        strategy=strategy,
        sort_order=sort_order,
        where=where,
        options=options,
        branch=branch,
        case_sensitive=case_sensitive,
        stop=stop,
    )
    if dry_run or planned.plan.snapshot is None:
        return RewriteResult(planned.plan)
    (engine or LocalEngine()).run(planned)
    return planned.result()


def plan_data_files(
    table: Table,
    *,
    strategy: str = "binpack",
    sort_order: str | SortOrder | None = None,
    where: str | BooleanExpression | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
    stop: Callable[[], bool] = lambda: False,
) -> DataFileRewrite:
    """Plans what `rewrite_data_files` does, from metadata alone.

    Args:
        table, strategy, sort_order, where, options, branch, case_sensitive, stop: as `rewrite_data_files` takes them.

    Returns:
        the rewriting, of which nothing is done yet.

    Raises:
        InvalidInputError: an option, the strategy or the order is none, or the branch does not exist.
        ExpressionParseError, UnknownColumnError, TypeMismatchError: the filter or the order does not fit the table.
    """
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    layout = layout_of(metadata, strategy, sort_order, name, case_sensitive)
    given = RewriteOptions(options, f"rewrite_data_files ({strategy})", name)
    given.refuse_others(sorts=layout.sorts, zorder=bool(layout.zorder))
    sizes = given.sizes(TARGET_FILE_BYTES.of(metadata.properties))
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
    number = None
    if snapshot is not None and rules.use_starting_sequence_number and metadata.format_version > 1:
        number = snapshot.sequence_number
    done = GroupCommits(table, commits, branch, number)
    return DataFileRewrite(table, plan, layout, done, branch, rules.remove_dangling_deletes, stop)
