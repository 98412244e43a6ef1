"""Groups of files rewritten side by side and committed as they are done."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from hms_iceberg.errors import CommitConflictError, CommitFailedError, IcebergError
from hms_iceberg.maintenance.rewrite.groups import FileGroup
from hms_iceberg.maintenance.rewrite.options import CommitRules
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.origin import Existing
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.rewrite_files import RewriteFiles

logger = logging.getLogger(__name__)

Group = FileGroup[Any]


@dataclass(frozen=True)
class Replaced:
    """What the rewriting of a group comes to.

    Attributes:
        removed: the files that go.
        added: the files that take their place.
        referenced: data files that must still be there when this is committed.
    """

    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    referenced: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Written:
    """A group that is written, with every file that was created for it."""

    group: Group
    replaced: Replaced
    created: tuple[str, ...]


def workers_for(rules: CommitRules, groups: int) -> int:
    """How many groups are rewritten at once: no more than asked for, and than there are processors."""
    return max(1, min(rules.workers, groups, os.cpu_count() or 1))


@dataclass
class GroupRun:
    """Rewrites groups and commits them, from the version of the table that was planned.

    Attributes:
        table: the table at that version.
        write: writes a group's files anew; calls its second argument with each location before the file is made.
        rules: how groups become commits.
        branch: the branch.
        data_sequence_number: of new data files, None for that of the commit.
        stop: asked before each group; True leaves the groups that are not begun for another run.
        committed: the groups that were done.
        failed: the groups that were not, and why.
        removed_deletes: delete files that went with data files.
    """

    table: Table
    write: Callable[[Group, Callable[[str], None]], Replaced]
    rules: CommitRules
    branch: str
    data_sequence_number: int | None = None
    stop: Callable[[], bool] = lambda: False
    committed: list[Written] = field(default_factory=list)
    failed: list[tuple[Group, str]] = field(default_factory=list)
    removed_deletes: int = 0
    _failed_commits: int = 0

    def __post_init__(self) -> None:
        # Conflicts are looked for in everything that came after the version that was planned.
        self._planned = Existing(MetadataVersion(self.table.metadata_location, self.table.metadata))

    def rewrite(self, groups: Sequence[Group], workers: int) -> None:
        """Rewrites and commits all groups.

        Raises:
            CommitConflictError, CommitFailedError: without partial progress, or after too many failed commits.
            CommitStateUnknownError: nobody can tell whether a commit was made; its files stay.
            IcebergError: without partial progress, a group could not be read or written.
        """
        per_commit = -(-len(groups) // self.rules.max_commits) if self.rules.partial_progress else len(groups)
        waiting: list[Written] = []
        try:
            for written in self._written(groups, workers):
                waiting.append(written)
                if self.rules.partial_progress and len(waiting) >= per_commit:
                    ready, waiting = waiting, []
                    self._commit_some(ready)
            if waiting:
                ready, waiting = waiting, []
                self._commit_some(ready)
        finally:
            self._delete(waiting)

    def _written(self, groups: Sequence[Group], workers: int) -> Iterator[Written]:
        """The groups as they are done, a few at a time."""
        todo = iter(groups)
        running: dict[Future[Written], Group] = {}
        with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-rewrite") as pool:
            try:
                while True:
                    while len(running) < workers and not self.stop() and (group := next(todo, None)) is not None:
                        running[pool.submit(self._write, group)] = group
                    if not running:
                        return
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        group = running.pop(future)
                        try:
                            written = future.result()
                        except IcebergError as error:
                            if not self.rules.partial_progress:
                                raise
                            self._note(group, error)
                        else:
                            yield written
            finally:
                left = [future for future in running if not future.cancel()]
                wait(left)
                self._delete(future.result() for future in left if future.exception() is None)

    def _write(self, group: Group) -> Written:
        created: list[str] = []
        try:
            return Written(group, self.write(group, created.append), tuple(created))
        except BaseException:
            self._delete([Written(group, Replaced((), ()), tuple(created))])
            raise

    # ------------------------------------------------------------------------------------------ committing

    def _commit_some(self, written: Sequence[Written]) -> None:
        """Some groups in one commit; after a conflict each by itself, so that only what is concerned is lost."""
        try:
            self._commit(written)
        except CommitConflictError as error:
            if self.rules.partial_progress and len(written) > 1:
                for each in written:
                    self._commit_some([each])
            else:
                self._lose(written, error)
        except CommitFailedError as error:
            self._lose(written, error)

    def _lose(self, written: Sequence[Written], error: IcebergError) -> None:
        self._delete(written)
        for each in written:
            self._note(each.group, error)
        self._failed_commits += 1
        if not self.rules.partial_progress or self._failed_commits > self.rules.max_failed_commits:
            raise error

    def _commit(self, written: Sequence[Written]) -> None:
        parts = [each.replaced for each in written]
        update = RewriteFiles(
            removed=tuple(file for part in parts for file in part.removed),
            added=tuple(file for part in parts for file in part.added),
            referenced=frozenset().union(*(part.referenced for part in parts)),
            data_sequence_number=self.data_sequence_number,
            branch=self.branch,
        )
        transaction = Transaction(self.table.identifier, self._planned, self.table.metastore, self.table.storage)
        transaction.add(update, preview=False)
        snapshot = transaction.commit().metadata.snapshot_by_id(update.snapshot_id)
        self.removed_deletes += int(snapshot.summary.get("removed-delete-files", 0)) if snapshot else 0
        self.committed += written

    def _note(self, group: Group, error: IcebergError) -> None:
        name = ".".join(self.table.identifier)
        logger.warning("A group of %d files of table %s was not rewritten: %s", len(group.items), name, error)
        self.failed.append((group, str(error)))

    def _delete(self, written: Iterable[Written]) -> None:
        """Files that no commit took."""
        for location in (location for each in written for location in each.created):
            try:
                self.table.storage.delete(location)
            except IcebergError as error:
                logger.warning("Could not delete the unused file %s: %s", location, error)
