"""Groups of files that were written anew, committed as they are done."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import CommitConflictError, CommitRefusedError, IcebergError
from hms_iceberg.maintenance.rewrite.file_groups import FileGroup
from hms_iceberg.maintenance.rewrite.options import CommitRules
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.outcome import Outcome
from hms_iceberg.transaction.transaction import Existing, Transaction
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles

logger = logging.getLogger(__name__)

Group = FileGroup[Any]


@dataclass(frozen=True)
class Replaced:
    """The files that the rewrite of one group removed and added."""

    removed: tuple[DataFile, ...]  # the files that go
    added: tuple[DataFile, ...]  # the files that take their place
    referenced: frozenset[str] = frozenset()  # data files that must still be there when this is committed


@dataclass(frozen=True)
class Written:
    """A group that is written, with every file that was created for it."""

    group: Group
    replaced: Replaced
    created: tuple[str, ...]


class GroupCommits:
    """Commits groups of rewritten files, based on the planned version; new data files get the given data sequence
    number, or the commit's. `removed_deletes` counts delete files that went with data files."""

    def __init__(self, table: Table, rules: CommitRules, branch: str, data_sequence_number: int | None = None) -> None:
        self.table = table
        self.rules = rules
        self.committed: list[Written] = []
        self.failed: list[tuple[Group, str]] = []
        self.removed_deletes = 0
        self._branch = branch
        self._data_sequence_number = data_sequence_number
        # Conflicts are looked for in everything that came after the version that was planned.
        self._planned = Existing(MetadataVersion(table.metadata_location, table.metadata))
        self._waiting: list[Written] = []
        self._per_commit: int | None = None
        self._failed_commits = 0

    def begin(self, groups: int) -> None:
        """How many groups there will be, which decides how many a commit has."""
        self._per_commit = -(-groups // self.rules.max_commits) if self.rules.partial_progress else None

    def take(self, written: Written) -> None:
        """Takes a written group; with partial progress it is committed when there are enough for a commit."""
        self._waiting.append(written)
        if self._per_commit is not None and len(self._waiting) >= self._per_commit:
            self.end()

    def lose(self, group: Group, error: IcebergError) -> None:
        """Notes a group that could not be written; without partial progress, raises the error."""
        if not self.rules.partial_progress:
            raise error
        self._note(group, error)

    def end(self) -> None:
        """Commits the groups that are written and not committed yet; raises what `take` raises."""
        ready, self._waiting = self._waiting, []
        if ready:
            self._commit_some(ready)

    def abandon(self) -> None:
        """Deletes the files of groups that are written and not committed."""
        waiting, self._waiting = self._waiting, []
        self.delete(waiting)

    def _commit_some(self, written: Sequence[Written]) -> None:
        """Commits several groups at once; after a conflict one by one, so that only groups in conflict are lost."""
        transaction = Transaction(self.table.identifier, self._planned, self.table.metastore, self.table.storage)
        try:
            self._commit(transaction, written)
        except BaseException as error:
            if transaction.outcome in (Outcome.MADE, Outcome.UNKNOWN):
                raise
            if isinstance(error, CommitConflictError) and self.rules.partial_progress and len(written) > 1:
                for each in written:
                    self._commit_some([each])
                return
            self.delete(written)
            if not isinstance(error, CommitRefusedError):
                raise
            self._fail(written, error)

    def _fail(self, written: Sequence[Written], error: IcebergError) -> None:
        for each in written:
            self._note(each.group, error)
        self._failed_commits += 1
        if not self.rules.partial_progress or self._failed_commits > self.rules.max_failed_commits:
            raise error

    def _commit(self, transaction: Transaction, written: Sequence[Written]) -> None:
        parts = [each.replaced for each in written]
        update = RewriteFiles(
            removed=tuple(file for part in parts for file in part.removed),
            added=tuple(file for part in parts for file in part.added),
            referenced=frozenset().union(*(part.referenced for part in parts)),
            data_sequence_number=self._data_sequence_number,
            branch=self._branch,
        )
        transaction.add(update, preview=False)
        snapshot = transaction.commit().metadata.snapshot_by_id(update.snapshot_id)
        self.removed_deletes += int(snapshot.summary.get("removed-delete-files", 0)) if snapshot else 0
        self.committed += written

    def _note(self, group: Group, error: IcebergError) -> None:
        name = ".".join(self.table.identifier)
        logger.warning("A group of %d files of table %s was not rewritten: %s", len(group.items), name, error)
        self.failed.append((group, str(error)))

    def delete(self, written: Iterable[Written]) -> None:
        """Files that no commit took."""
        for location in (location for each in written for location in each.created):
            try:
                self.table.storage.delete(location)
            except IcebergError as error:
                logger.warning("Could not delete the unused file %s: %s", location, error)


# --------------------------------------------------------------------------- groups side by side in this process


WriteGroup = Callable[[Any, Callable[[str], None]], Replaced]


def workers_for(rules: CommitRules, groups: int) -> int:
    """How many groups are rewritten at once: no more than asked for, and than there are processors."""
    return max(1, min(rules.workers, groups, os.cpu_count() or 1))


def rewrite_groups(
    commits: GroupCommits,
    groups: Sequence[Group],
    write: WriteGroup,
    workers: int,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Rewrites and commits all groups, none that has not begun once `stop` says True; `write` calls its second argument
    with each location before the file is made. Partial progress keeps errors until too many commits failed."""
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
                self._commits.delete(future.result() for future in left if future.exception() is None)

    def _write(self, group: Group) -> Written:
        created: list[str] = []
        try:
            return Written(group, self._write_group(group, created.append), tuple(created))
        except BaseException:
            self._commits.delete([Written(group, Replaced((), ()), tuple(created))])
            raise
