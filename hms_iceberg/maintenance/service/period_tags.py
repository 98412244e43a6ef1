"""Daily and monthly tags: one for each day or month that is over, of the last snapshot that main got in it.

A tag is the service's if the table's property of its name says so, which is set in the commit that makes the tag. So
tags of others stay, whatever their names, and one that somebody dropped or moved is not made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from hms_iceberg.maintenance.repair.repair_journal import SERVICE_STATE
from hms_iceberg.maintenance_policy import Policy
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import SnapshotRefType
from hms_iceberg.table.table import Table

_MADE = f"{SERVICE_STATE}tag."
_FOR_EVER = 2**63 - 1


@dataclass(frozen=True)
class PeriodTags:
    """The changes of the tags of days and months."""

    made: Mapping[str, int]  # new tags, with their snapshots
    dropped: tuple[str, ...]  # tags beyond those that are kept
    forgotten: tuple[str, ...]  # names of properties that tell of tags which go, or which others changed

    def __bool__(self) -> bool:
        return bool(self.made or self.forgotten)

    def in_words(self) -> str:
        """The changes, for people."""
        names = {"makes": tuple(self.made), "drops": self.dropped}
        return "; ".join(f"{verb} {', '.join(each)}" for verb, each in names.items() if each) or "none goes or comes"

    def commit(self, table: Table) -> None:
        """Makes the changes in one commit; one that another writer's commit is against fails."""
        with table.transaction() as transaction:
            snapshots = transaction.manage_snapshots()
            for name, snapshot_id in self.made.items():
                snapshots.create_tag(snapshot_id, name, _FOR_EVER)
            for name in self.dropped:
                snapshots.remove_tag(name)
            snapshots.commit()
            transaction.set_properties({_MADE + name: str(snapshot_id) for name, snapshot_id in self.made.items()})
            transaction.remove_properties(*self.forgotten)


def period_tags(metadata: TableMetadata, policy: Policy, now_ms: int) -> PeriodTags:
    """The tags to make and to drop; a setting that is absent leaves those of its kind as they are."""
    made: dict[str, int] = {}
    dropped: list[str] = []
    forgotten: list[str] = []
    for kind, form, kept in (("daily", "%Y-%m-%d", policy.tags_daily), ("monthly", "%Y-%m", policy.tags_monthly)):
        if kept is None:
            continue
        known = {
            name[len(_MADE) :]: text for name, text in metadata.properties.items() if name.startswith(f"{_MADE}{kind}-")
        }
        last = {f"{kind}-{period}": each for period, each in _last_of(metadata, form, policy.time_zone, now_ms, kept)}
        newest = sorted({*known, *last}, reverse=True)[:kept]
        made |= {each: last[each] for each in newest if each not in known and each not in metadata.refs}
        for name in known.keys() - newest:
            forgotten.append(_MADE + name)
            ref = metadata.refs.get(name)
            if ref and ref.snapshot_ref_type is SnapshotRefType.TAG and str(ref.snapshot_id) == known[name]:
                dropped.append(name)
    return PeriodTags(made, tuple(sorted(dropped)), tuple(sorted(forgotten)))


def _last_of(metadata: TableMetadata, form: str, zone: tzinfo, now_ms: int, count: int) -> Iterator[tuple[str, int]]:
    """The last snapshots that main got in each of so many periods that are over, the newest first."""
    found: set[str] = set()
    current = datetime.fromtimestamp(now_ms / 1000, zone).strftime(form)
    for snapshot in metadata.ancestors_of(metadata.current_snapshot_id):
        if len(found) >= count:
            return
        period = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, zone).strftime(form)
        if period < current and period not in found:
            found.add(period)
            yield period, snapshot.snapshot_id
