"""Branches that nobody uses any more.

The format does not tell when a branch was made or last moved: one that was made today may be at an old snapshot. So the
service notes at which snapshot it sees a branch, and drops it if it is there still after the time of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.maintenance.repair.repair_journal import SERVICE_STATE
from hms_iceberg.maintenance_policy import Policy
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, SnapshotRef
from hms_iceberg.spec.table_properties import WAP_ENABLED
from hms_iceberg.table.changes.row_change import WAP_ID
from hms_iceberg.table.table import Table

_SEEN = f"{SERVICE_STATE}branch."


@dataclass(frozen=True)
class UnusedBranches:
    """The branches to drop, and the notes to take and to remove."""

    dropped: tuple[str, ...]  # branches that nobody used for so long
    noted: Mapping[str, str]  # notes of branches that are seen at their snapshots for the first time, by property
    forgotten: tuple[str, ...]  # names of notes of branches that are gone, or that are left alone

    def __bool__(self) -> bool:
        return bool(self.dropped or self.noted or self.forgotten)

    def in_words(self) -> str:
        """The changes in words, for people."""
        noted = sorted(name[len(_SEEN) :] for name in self.noted)
        parts = [f"drops {', '.join(self.dropped)}"] if self.dropped else []
        parts += [f"notes at which snapshot it sees {', '.join(noted)}"] if noted else []
        return "; ".join(parts) or "forgets what it noted of branches that are gone"

    def commit(self, table: Table) -> None:
        """Drops and notes in one commit; a branch that another writer moved meanwhile makes it fail."""
        with table.transaction() as transaction:
            snapshots = transaction.manage_snapshots()
            for name in self.dropped:
                snapshots.remove_branch(name)
            snapshots.commit()
            transaction.set_properties(self.noted)
            transaction.remove_properties(*self.forgotten)


def unused_branches(metadata: TableMetadata, policy: Policy, now_ms: int) -> UnusedBranches:
    """The branches without use, and those to be noted; none without a policy. Main and branches with `max-ref-age-ms`
    stay, and unless the policy says otherwise those for write-audit-publish (`write.wap.enabled`, or a snapshot with
    `wap.id`)."""
    age = policy.branches_unused_age
    if age is None:
        return UnusedBranches((), {}, ())
    dropped: list[str] = []
    noted: dict[str, str] = {}
    seen = {name: text for name, text in metadata.properties.items() if name.startswith(_SEEN)}
    left = set(seen)
    for name, ref in metadata.refs.items():
        is_left_alone = name == MAIN_BRANCH or not ref.is_branch or ref.max_ref_age_ms is not None
        if is_left_alone or (not policy.branches_wap and _is_for_audits(metadata, ref)):
            continue
        snapshot_id, _, since = seen.get(_SEEN + name, "").partition(" ")
        if snapshot_id != str(ref.snapshot_id) or not since.isdigit():
            noted[_SEEN + name] = f"{ref.snapshot_id} {now_ms}"
        elif now_ms - int(since) >= age.milliseconds:
            dropped.append(name)
            continue
        left.discard(_SEEN + name)
    return UnusedBranches(tuple(sorted(dropped)), noted, tuple(sorted(left)))


def _is_for_audits(metadata: TableMetadata, ref: SnapshotRef) -> bool:
    if WAP_ENABLED.of(metadata.properties):
        return True
    of_main = {each.snapshot_id for each in metadata.ancestors_of(metadata.current_snapshot_id)}
    for snapshot in metadata.ancestors_of(ref.snapshot_id):
        if snapshot.snapshot_id in of_main:
            return False
        if WAP_ID in (snapshot.summary or {}):
            return True
    return False
