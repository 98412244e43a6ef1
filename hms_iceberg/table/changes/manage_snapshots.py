"""Builders of changes of branches, tags and the current snapshot, and of the expiry of snapshots."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, SnapshotRefType, StatisticsFile
from hms_iceberg.table.changes.pending import PendingChange, StartedChange
from hms_iceberg.table.reading.scan import milliseconds
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots
from hms_iceberg.updates.snapshots.rollback import CherryPick, Rollback, SetCurrentSnapshot
from hms_iceberg.updates.snapshots.snapshot_refs import (
    CreateRef,
    FastForward,
    RemoveRef,
    RenameBranch,
    ReplaceRef,
    SetRetention,
)
from hms_iceberg.updates.table_settings import RemoveStatistics, SetStatistics

Time = int | str | dt.datetime


class ManageSnapshots(PendingChange):
    """Changes branches, tags and the snapshot of main, in the order of the calls.

    Each method returns this object, so that calls can be chained.
    """

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._pending: list[Update] = []
        self._after: TableMetadata | None = None

    def _updates(self) -> list[Update]:
        return self._pending

    def _add(self, update: Update) -> ManageSnapshots:
        base = self._metadata if self._after is None else self._after
        self._after = self._transaction.applied(update, base)
        self._pending.append(update)
        return self

    def create_branch(
        self,
        snapshot_id: int | None,
        branch_name: str,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> ManageSnapshots:
        """Creates a branch at a snapshot; None stands for the current one.

        Args:
            snapshot_id: the snapshot; None stands for the current one.
            branch_name: a name that no branch or tag has.
            max_ref_age_ms: after how many milliseconds the branch expires itself; None keeps it.
            max_snapshot_age_ms: how old its snapshots may become, in milliseconds; None takes the
                table's setting.
            min_snapshots_to_keep: how many of its snapshots never expire; None takes the table's
                setting.

        Raises:
            InvalidInputError: the two are exchanged.
            RefAlreadyExistsError: the name is taken.
            NoSuchSnapshotError: no such snapshot.
        """
        _check_order(snapshot_id, branch_name, "create_branch")
        return self._add(
            CreateRef(
                branch_name,
                snapshot_id,
                SnapshotRefType.BRANCH,
                min_snapshots_to_keep,
                max_snapshot_age_ms,
                max_ref_age_ms,
            )
        )

    def create_tag(self, snapshot_id: int | None, tag_name: str, max_ref_age_ms: int | None = None) -> ManageSnapshots:
        """Creates a tag at a snapshot; None stands for the current one.

        Args:
            snapshot_id: the snapshot; None stands for the current one.
            tag_name: a name that no branch or tag has.
            max_ref_age_ms: after how many milliseconds the tag expires itself; None keeps it.

        Raises:
            InvalidInputError: the two are exchanged.
            RefAlreadyExistsError: the name is taken.
            NoSuchSnapshotError: no such snapshot.
        """
        _check_order(snapshot_id, tag_name, "create_tag")
        return self._add(CreateRef(tag_name, snapshot_id, SnapshotRefType.TAG, max_ref_age_ms=max_ref_age_ms))

    def remove_branch(self, branch_name: str) -> ManageSnapshots:
        """Removes a branch; its snapshots stay until they expire."""
        return self._add(RemoveRef(branch_name, SnapshotRefType.BRANCH))

    def remove_tag(self, tag_name: str) -> ManageSnapshots:
        """Removes a tag."""
        return self._add(RemoveRef(tag_name, SnapshotRefType.TAG))

    def rename_branch(self, name: str, new_name: str) -> ManageSnapshots:
        """Gives a branch another name.

        Args:
            name: the branch; not main.
            new_name: a name that no branch or tag has.

        Raises:
            NoSuchRefError: no such branch.
            RefAlreadyExistsError: the new name is taken.
            InvalidInputError: it is main, or a tag.
        """
        return self._add(RenameBranch(name, new_name))

    def replace_branch(self, name: str, snapshot_id: int | None = None, source: str | None = None) -> ManageSnapshots:
        """Points a branch at another snapshot, given by its id or by another ref.

        Args:
            name: the branch.
            snapshot_id: the snapshot, unless `source` is given.
            source: a branch or tag at the snapshot.

        Raises:
            NoSuchRefError: no such branch or source, or neither `snapshot_id` nor `source` is given.
            NoSuchSnapshotError: no such snapshot.
            InvalidInputError: the name is a tag's.
        """
        return self._add(ReplaceRef(name, SnapshotRefType.BRANCH, snapshot_id, source))

    def replace_tag(self, name: str, snapshot_id: int) -> ManageSnapshots:
        """Points a tag at another snapshot.

        Args:
            name: the tag.
            snapshot_id: the snapshot.

        Raises:
            NoSuchRefError: no such tag.
            NoSuchSnapshotError: no such snapshot.
            InvalidInputError: the name is a branch's.
        """
        return self._add(ReplaceRef(name, SnapshotRefType.TAG, snapshot_id))

    def fast_forward_branch(self, branch_name: str, source: str) -> ManageSnapshots:
        """Moves a branch forward to where `source` is, which must be its descendant.

        Args:
            branch_name: the branch that moves.
            source: the branch or tag that it moves to.

        Raises:
            NoSuchRefError: no such source.
            InvalidInputError: the branch is no ancestor of the source, or is a tag.
        """
        return self._add(FastForward(branch_name, source))

    def set_min_snapshots_to_keep(self, branch_name: str, min_snapshots_to_keep: int) -> ManageSnapshots:
        """Sets how many snapshots of a branch never expire.

        Args:
            branch_name: the branch.
            min_snapshots_to_keep: 1 or more.

        Raises:
            NoSuchRefError: no such branch.
            InvalidInputError: the name is a tag's, or the number is below 1.
        """
        return self._add(SetRetention(branch_name, min_snapshots_to_keep=min_snapshots_to_keep))

    def set_max_snapshot_age_ms(self, branch_name: str, max_snapshot_age_ms: int) -> ManageSnapshots:
        """Sets how old snapshots of a branch may become before they expire.

        Args:
            branch_name: the branch.
            max_snapshot_age_ms: milliseconds.

        Raises:
            NoSuchRefError: no such branch.
            InvalidInputError: the name is a tag's, or the number is below 1.
        """
        return self._add(SetRetention(branch_name, max_snapshot_age_ms=max_snapshot_age_ms))

    def set_max_ref_age_ms(self, name: str, max_ref_age_ms: int) -> ManageSnapshots:
        """Sets how old a branch or tag may become before it expires itself.

        Args:
            name: the branch or tag.
            max_ref_age_ms: milliseconds.

        Raises:
            NoSuchRefError: no such branch or tag.
            InvalidInputError: it is main, which never expires, or the number is below 1.
        """
        return self._add(SetRetention(name, max_ref_age_ms=max_ref_age_ms))

    def set_current_snapshot(self, snapshot_id: int | None = None, ref_name: str | None = None) -> ManageSnapshots:
        """Points main at any snapshot, given by its id or by a ref.

        Args:
            snapshot_id: the snapshot, unless `ref_name` is given.
            ref_name: a branch or tag at the snapshot.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: no such snapshot, branch or tag.
            InvalidInputError: neither or both are given.
        """
        return self._add(SetCurrentSnapshot(snapshot_id, ref_name))

    def rollback_to_snapshot(self, snapshot_id: int) -> ManageSnapshots:
        """Points main at an ancestor of the current snapshot."""
        return self._add(Rollback(snapshot_id))

    def rollback_to_timestamp(self, timestamp_ms: Time) -> ManageSnapshots:
        """Points main at the last snapshot of its history before a time."""
        return self._add(Rollback(before_ms=milliseconds(timestamp_ms)))

    def cherrypick(self, snapshot_id: int) -> ManageSnapshots:
        """Makes the change of a staged snapshot, or of one of another branch, part of main."""
        return self._add(CherryPick(snapshot_id))


def _check_order(snapshot_id: object, name: object, method: str) -> None:
    if isinstance(snapshot_id, str) or not isinstance(name, str):
        raise InvalidInputError(
            f"Cannot {method}({snapshot_id!r}, {name!r}): the snapshot's id comes first (None for the current one), "
            f"then the name, as in {method}(None, 'v1')."
        )


class UpdateStatistics(PendingChange):
    """Changes the statistics files of snapshots."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._pending: list[Update] = []

    def _updates(self) -> list[Update]:
        return self._pending

    def set_statistics(self, statistics_file: StatisticsFile | PartitionStatisticsFile) -> UpdateStatistics:
        """Registers a file, in place of another one of the same snapshot.

        Raises:
            NoSuchSnapshotError: when it is committed: the snapshot is not there.
        """
        self._pending.append(SetStatistics(statistics_file))
        return self

    def remove_statistics(self, snapshot_id: int) -> UpdateStatistics:
        """Removes the statistics file of a snapshot; does nothing if there is none."""
        self._pending.append(RemoveStatistics(snapshot_id))
        return self

    def remove_partition_statistics(self, snapshot_id: int) -> UpdateStatistics:
        """Removes the partition statistics file of a snapshot; does nothing if there is none."""
        self._pending.append(RemoveStatistics(snapshot_id, of_partitions=True))
        return self


class ExpireSnapshotsBuilder(PendingChange):
    """Chooses the snapshots to expire. Files stay; `hms_iceberg.maintenance.expire_with_files` deletes them too."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._older_than_ms: int | None = None
        self._retain_last: int | None = None
        self._ids: frozenset[int] = frozenset()

    def _updates(self) -> list[Update]:
        return [ExpireSnapshots(self._older_than_ms, self._retain_last, self._ids)]

    def older_than(self, time: Time) -> ExpireSnapshotsBuilder:
        """Expires snapshots older than this; by default than the table's `history.expire.max-snapshot-age-ms`."""
        self._older_than_ms = milliseconds(time)
        return self

    def retain_last(self, count: int) -> ExpireSnapshotsBuilder:
        """Keeps so many snapshots of every branch, whatever their age."""
        self._retain_last = count
        return self

    def by_id(self, snapshot_id: int) -> ExpireSnapshotsBuilder:
        """Expires a snapshot that no branch or tag points at."""
        return self.by_ids([snapshot_id])

    def by_ids(self, snapshot_ids: Iterable[int]) -> ExpireSnapshotsBuilder:
        """Expires snapshots that no branch or tag points at."""
        self._ids |= frozenset(snapshot_ids)
        return self
