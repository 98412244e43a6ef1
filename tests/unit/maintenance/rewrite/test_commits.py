"""Groups that were written anew are committed as asked for, and what no commit took is deleted, and nothing else."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptDataFileError,
    MetastoreUnavailableError,
    StorageError,
)
from hms_iceberg.maintenance.rewrite.commits import GroupCommits, Replaced, rewrite_groups, workers_for
from hms_iceberg.maintenance.rewrite.file_groups import FileGroup
from hms_iceberg.maintenance.rewrite.options import CommitRules
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.table import Table
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from tests.support.memory_metastore import (
    Outcome,
    conflict,
    interrupt,
    lost_answer_after_failure,
    lost_answer_after_success,
    server_gone,
    success_reported_as_conflict,
)
from tests.support.tables import NAME, World, data_file, metadata, position_deletes

ALONE = {"commit.retry.num-retries": "0"}


class Rewriting:
    """A table of so many files, each a group of its own, of which the file written anew is in the storage."""

    def __init__(self, count: int, **rules: Any) -> None:
        self.world = World.with_table(metadata(properties=ALONE))
        self.old = [data_file() for _ in range(count)]
        self.world.append(*self.old)
        self.table = Table(NAME, self.world.version(), self.world.metastore, self.world.storage)
        self.commits = GroupCommits(self.table, CommitRules(**rules), "main")
        self.new = {file.file_path: data_file() for file in self.old}
        self.groups = [FileGroup("", (file,), 1, 1, 1) for file in self.old]
        self.fails: dict[int, BaseException] = {}
        self.late: set[int] = set()
        self.gone: set[str] = set()

    def remove(self, *numbers: int) -> None:
        """Another writer removes files of groups."""
        files = tuple(self.old[number] for number in numbers)
        self.world.commit(DeleteFiles(files))
        self.gone = {file.file_path for file in files}

    def write(self, group: FileGroup[DataFile], note: Callable[[str], None]) -> Replaced:
        """Writes a group's file anew."""
        (old,) = group.items
        new = self.new[old.file_path]
        note(new.file_path)
        self.world.storage.create(new.file_path, b"rows")
        if self.old.index(old) in self.late:
            time.sleep(0.05)
        if error := self.fails.get(self.old.index(old)):
            raise error
        return Replaced((old,), (new,), frozenset())

    def run(self, workers: int = 1, stop: Callable[[], bool] = lambda: False) -> None:
        """Rewrites all groups."""
        rewrite_groups(self.commits, self.groups, self.write, workers, stop)

    def check(self, done: Sequence[int], failed: Sequence[int] = (), left: Sequence[int] = ()) -> None:
        """The table, what is told of the groups, and the files in the storage agree.

        Args:
            done: numbers of the groups that were committed.
            failed: those that are told as failed.
            left: those whose new files stay although nobody knows of a commit.
        """
        new = [self.new[file.file_path].file_path for file in self.old]
        rows = [new[number] if number in done else file.file_path for number, file in enumerate(self.old)]
        assert self.world.live_paths() == sorted(path for path in rows if path not in self.gone)
        assert {self.groups.index(each.group) for each in self.commits.committed} == set(done)
        assert [self.groups.index(group) for group, _ in self.commits.failed] == list(failed)
        stored = {number for number, path in enumerate(new) if path in self.world.storage.files}
        assert stored == {*done, *left}
        self.world.check()


@pytest.mark.parametrize(
    ("groups", "rules", "commits"),
    [
        (7, {"max_commits": 3}, 3),
        (6, {"max_commits": 3}, 3),
        (4, {"max_commits": 10}, 4),
        (5, {"max_commits": 1}, 1),
        (5, {"partial_progress": False}, 1),
    ],
)
def test_groups_become_as_many_commits_as_are_asked_for(groups: int, rules: dict[str, Any], commits: int) -> None:
    rewriting = Rewriting(groups, **rules)
    rewriting.run()
    rewriting.check(range(groups))
    assert rewriting.commits.removed_deletes == 0
    assert len(rewriting.world.version().metadata.snapshots) == 1 + commits


@pytest.mark.parametrize("groups", [2, 4])
def test_of_groups_of_one_commit_only_those_in_conflict_are_lost(groups: int) -> None:
    rewriting = Rewriting(groups, max_commits=1)
    rewriting.remove(1)
    rewriting.run()
    rewriting.check([0, *range(2, groups)], failed=[1])
    assert rewriting.old[1].file_path in rewriting.commits.failed[0][1]


@pytest.mark.parametrize(("allowed", "fails"), [(0, True), (1, True), (2, False)])
def test_a_run_fails_after_more_failed_commits_than_it_may_have(allowed: int, fails: bool) -> None:
    rewriting = Rewriting(4, max_commits=10, max_failed_commits=allowed)
    rewriting.remove(0, 2)
    if fails:
        with pytest.raises(CommitConflictError):
            rewriting.run()
        rewriting.check([] if allowed == 0 else [1], failed=[0, 2][: allowed + 1])
    else:
        rewriting.run()
        rewriting.check([1, 3], failed=[0, 2])


def test_without_partial_progress_a_conflict_loses_all_groups() -> None:
    rewriting = Rewriting(3, partial_progress=False)
    rewriting.remove(2)
    with pytest.raises(CommitConflictError):
        rewriting.run()
    rewriting.check([], failed=[0, 1, 2])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("partial_progress", [True, False])
def test_a_group_that_cannot_be_read_is_lost_alone_or_with_all_others(partial_progress: bool, workers: int) -> None:
    rewriting = Rewriting(4, partial_progress=partial_progress, max_commits=1)
    rewriting.fails[1] = CorruptDataFileError("Cannot read it.")
    if partial_progress:
        rewriting.run(workers)
        rewriting.check([0, 2, 3], failed=[1])
    else:
        with pytest.raises(CorruptDataFileError):
            rewriting.run(workers)
        rewriting.check([])


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=["interrupted", "no memory"])
def test_whatever_ends_a_run_takes_the_files_that_no_commit_took_along(error: BaseException, workers: int) -> None:
    rewriting = Rewriting(5, max_commits=1)
    rewriting.fails[2] = error
    with pytest.raises(type(error)):
        rewriting.run(workers)
    rewriting.check([])


def test_what_ends_a_run_is_told_whatever_becomes_of_groups_beside_it_whose_files_go_too() -> None:
    rewriting = Rewriting(3, max_commits=1)
    rewriting.fails, rewriting.late = {0: MemoryError(), 1: StorageError("full")}, {1, 2}
    with pytest.raises(MemoryError):
        rewriting.run(workers=3)
    rewriting.check([], failed=[rewriting.groups.index(group) for group, _ in rewriting.commits.failed])


@pytest.mark.parametrize(
    ("outcome", "error", "done", "failed", "left"),
    [
        (conflict, None, [], [0, 1], []),
        (server_gone, MetastoreUnavailableError, [], [], []),
        (interrupt, KeyboardInterrupt, [], [], [0, 1]),
        (lost_answer_after_failure, CommitStateUnknownError, [], [], [0, 1]),
        (lost_answer_after_success, None, [0, 1], [], []),
        (success_reported_as_conflict, None, [0, 1], [], []),
    ],
)
def test_the_files_of_a_commit_go_only_where_it_was_certainly_not_made(
    outcome: Outcome, error: type[BaseException] | None, done: list[int], failed: list[int], left: list[int]
) -> None:
    rewriting = Rewriting(2, max_commits=1)
    rewriting.world.metastore.script.append(outcome)
    with pytest.raises(error) if error else nullcontext():
        rewriting.run()
    rewriting.world.metastore.down = False
    rewriting.check(done, failed, left)


def test_a_run_that_is_stopped_commits_what_is_written_and_begins_nothing_new() -> None:
    rewriting, asked = Rewriting(4, max_commits=1), iter([False, False, True])
    rewriting.run(stop=lambda: next(asked))
    rewriting.check([0, 1])


def test_a_file_that_cannot_be_deleted_is_told_and_the_others_go(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rewriting = Rewriting(3, partial_progress=False)
    rewriting.fails[2] = StorageError("full")
    delete, stuck = rewriting.world.storage.delete, rewriting.new[rewriting.old[0].file_path].file_path

    def failing(location: str) -> None:
        if location == stuck:
            raise StorageError("denied")
        delete(location)

    monkeypatch.setattr(rewriting.world.storage, "delete", failing)
    with caplog.at_level(logging.WARNING), pytest.raises(StorageError, match="full"):
        rewriting.run()
    rewriting.check([], left=[0])
    assert stuck in caplog.text


def test_deletes_that_go_with_their_data_files_are_counted() -> None:
    rewriting = Rewriting(3)
    rewriting.world.commit(RowDelta(tuple(position_deletes(file) for file in rewriting.old[:2])))
    rewriting.table.refresh()
    rewriting.commits = GroupCommits(rewriting.table, CommitRules(), "main")
    rewriting.run()
    rewriting.check([0, 1, 2])
    assert rewriting.commits.removed_deletes == 2


@pytest.mark.parametrize(
    ("asked", "groups", "cores", "expected"), [(5, 9, 4, 4), (2, 9, 4, 2), (5, 3, 4, 3), (5, 0, 4, 1), (5, 9, None, 1)]
)
def test_no_more_groups_are_rewritten_at_once_than_there_are_processors(
    asked: int, groups: int, cores: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert workers_for(CommitRules(workers=asked), groups) == expected
