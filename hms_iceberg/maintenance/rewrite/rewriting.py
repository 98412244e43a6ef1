"""A rewriting of data files between its plan and its result, and what may carry it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hms_iceberg.maintenance.rewrite.commits import GroupCommits, Replaced, Written
from hms_iceberg.maintenance.rewrite.layout import Layout
from hms_iceberg.maintenance.rewrite.rewrite_deletes import remove_dangling_deletes
from hms_iceberg.maintenance.rewrite.rewrite_plan import RewritePlan, TaskGroup
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.table.table import Table


@dataclass(frozen=True)
class RewriteResult:
    """The result of rewriting data files.

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


@dataclass(frozen=True)
class DataFileRewrite:
    """A planned rewriting. Who writes its groups passes the results, or failures, to `commits`."""

    table: Table  # the table, at the version that was planned
    plan: RewritePlan  # which files are rewritten
    layout: Layout  # how rows are ordered
    commits: GroupCommits  # takes groups that are written; not to be called by two threads at once
    branch: str  # the branch that is rewritten
    remove_dangling_deletes: bool  # whether deletes that apply to nothing any more are removed at the end
    stop: Callable[[], bool]  # asked before each group; True leaves what is not begun for another run

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return ".".join(self.table.identifier)

    @property
    def groups_at_once(self) -> int:
        """How many groups may be written at the same time."""
        return max(1, min(self.commits.rules.workers, len(self.plan.groups)))

    def take(self, group: TaskGroup, added: tuple[DataFile, ...], created: tuple[str, ...]) -> None:
        """Takes a group's new files and the locations of all that were made; commits when enough groups are there."""
        removed = tuple(task.file for task in group.items)
        self.commits.take(Written(group, Replaced(removed, added), created))

    def result(self) -> RewriteResult:
        table, done = self.table.refresh(), self.commits
        removed = done.removed_deletes
        if self.remove_dangling_deletes:
            removed += len(remove_dangling_deletes(table, branch=self.branch))
        return RewriteResult(
            self.plan,
            rewritten_data_files_count=sum(len(each.group.items) for each in done.committed),
            added_data_files_count=sum(len(each.replaced.added) for each in done.committed),
            rewritten_bytes_count=sum(each.group.input_bytes for each in done.committed),
            failed_data_files_count=sum(len(group.items) for group, _ in done.failed),
            removed_delete_files_count=removed,
            failures=tuple(reason for _, reason in done.failed),
        )


class Engine(Protocol):
    """Carries out a rewriting that is planned."""

    def run(self, rewrite: DataFileRewrite) -> None:
        """Writes the groups of a plan, and hands each to the rewriting when it is written."""
        ...
