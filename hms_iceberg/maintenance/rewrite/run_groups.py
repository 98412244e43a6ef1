"""Groups of files rewritten side by side in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing

from hms_iceberg.errors import IcebergError
from hms_iceberg.maintenance.rewrite.commits import Group, GroupCommits, Replaced, Written
from hms_iceberg.maintenance.rewrite.options import CommitRules

WriteGroup = Callable[[Group, Callable[[str], None]], Replaced]


def workers_for(rules: CommitRules, groups: int) -> int:
    """How many groups are rewritten at once: no more than asked for, and than there are processors.

    Args:
        rules: how many are asked for.
        groups: number of groups.
    """
    return max(1, min(rules.workers, groups, os.cpu_count() or 1))


def rewrite_groups(
    commits: GroupCommits,
    groups: Sequence[Group],
    write: WriteGroup,
    workers: int,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Rewrites and commits all groups.

    Args:
        commits: takes what is written.
        groups: what is rewritten.
        write: writes a group's files anew; calls its second argument with each location before the file is made.
        workers: how many groups are written at once.
        stop: asked before each group; True leaves the groups that are not begun for another run.

    Raises:
        CommitConflictError, CommitFailedError: without partial progress, or after too many failed commits.
        CommitStateUnknownError: nobody can tell whether a commit was made; its files stay.
        IcebergError: without partial progress, a group could not be read or written.
    """
    commits.begin(len(groups))
    try:
        with closing(_Pool(commits, write, stop).written(groups, workers)) as done:
            for written in done:
                commits.take(written)
        commits.end()
    finally:
        commits.abandon()


class _Pool:
    def __init__(self, commits: GroupCommits, write: WriteGroup, stop: Callable[[], bool]) -> None:
        self._commits = commits
        self._write_group = write
        self._stop = stop

    def written(self, groups: Sequence[Group], workers: int) -> Generator[Written, None, None]:
        """The groups in the order in which they are finished, with a few written at once."""
        todo = iter(groups)
        running: dict[Future[Written], Group] = {}
        with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-rewrite") as pool:
            try:
                while True:
                    while len(running) < workers and not self._stop() and (group := next(todo, None)) is not None:
                        running[pool.submit(self._write, group)] = group
                    if not running:
                        return
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        group = running.pop(future)
                        try:
                            written = future.result()
                        except IcebergError as error:
                            self._commits.lose(group, error)
                        else:
                            yield written
            finally:
                left = [future for future in running if not future.cancel()]
                wait(left)
                self._commits.delete(future.result() for future in left if future.exception() is None)

    def _write(self, group: Group) -> Written:
        created: list[str] = []
        try:
            return Written(group, self._write_group(group, created.append), tuple(created))
        except BaseException:
            self._commits.delete([Written(group, Replaced((), ()), tuple(created))])
            raise
