"""How long the way back is promised: no expiry deletes the migration's snapshot earlier, whatever is committed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hms_iceberg.migration.undo.rollback_migration import kept_until
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot, SnapshotRef, SnapshotRefType
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots
from tests.support.tables import World, data_file

ALWAYS = 2**63 - 1
START = 1_600_000_000_000


@pytest.fixture(scope="module")
def world() -> World:
    world = World.with_table()
    for _ in range(6):
        world.append(data_file())
    return world


def table(world: World, refs: dict[str, SnapshotRef], parents: list[int], ages: dict[str, str]) -> TableMetadata:
    """A table of snapshots that are 1000 ms apart; the first is the migration's."""
    metadata = world.version().metadata
    ids = [each.snapshot_id for each in metadata.snapshots]
    snapshots = [
        replace(each, timestamp_ms=START + 1000 * number, parent_snapshot_id=ids[parents[number]] if number else None)
        for number, each in enumerate(metadata.snapshots)
    ]
    return replace(
        metadata,
        snapshots=tuple(snapshots),
        snapshot_log=(),
        current_snapshot_id=refs["main"].snapshot_id,
        refs=refs,
        properties={f"history.expire.{name}": value for name, value in ages.items()},
    )


def is_kept(world: World, metadata: TableMetadata, snapshot: Snapshot, at_ms: int) -> bool:
    after = ExpireSnapshots(at_ms=at_ms).apply(metadata, world.begin().workspace)
    return snapshot.snapshot_id in {each.snapshot_id for each in after.snapshots}


def committed_to_every_branch(metadata: TableMetadata, at_ms: int) -> TableMetadata:
    """Each branch has a new head, which is as old as can be, or as young."""
    snapshots, refs = list(metadata.snapshots), dict(metadata.refs)
    for number, (name, ref) in enumerate(metadata.refs.items()):
        if ref.is_branch:
            head = metadata.snapshot_by_id(ref.snapshot_id)
            assert head is not None
            new = replace(head, snapshot_id=number + 1, parent_snapshot_id=head.snapshot_id, timestamp_ms=at_ms)
            snapshots.append(new)
            refs[name] = replace(ref, snapshot_id=new.snapshot_id)
    return replace(metadata, snapshots=tuple(snapshots), refs=refs, current_snapshot_id=refs["main"].snapshot_id)


@pytest.mark.parametrize("seed", range(150))
def test_until_the_promised_time_no_expiry_takes_the_snapshot_and_then_one_may(world: World, seed: int) -> None:
    chance = random.Random(seed)
    ids = [each.snapshot_id for each in world.version().metadata.snapshots]

    def age() -> int | None:
        return chance.choice([None, None, chance.randrange(1, 9) * 700, 40_000])

    refs = {"main": SnapshotRef(chance.choice(ids[1:]), SnapshotRefType.BRANCH, None, age(), None)}
    for number in range(chance.randrange(3)):
        kind = chance.choice(list(SnapshotRefType))
        ages = (chance.choice([None, 2]), age()) if kind is SnapshotRefType.BRANCH else (None, None)
        refs[f"r{number}"] = SnapshotRef(chance.choice(ids), kind, *ages, age())
    parents = [0, *(chance.randrange(number) if chance.random() < 0.3 else number - 1 for number in range(1, 6))]
    properties = {"max-snapshot-age-ms": str(chance.choice([1_500, 6_000])), "min-snapshots-to-keep": "1"}
    if chance.random() < 0.3:
        properties["max-ref-age-ms"] = "3000"
    metadata = table(world, refs, parents, properties)
    first = metadata.snapshots[0]

    promised = kept_until(metadata, first)

    last = START + 60_000 if promised >= ALWAYS else promised
    for at_ms in [START, last, *(chance.randrange(START, last + 1) for _ in range(6))]:
        assert is_kept(world, metadata, first, at_ms)
        assert is_kept(world, committed_to_every_branch(metadata, START + 5_000), first, at_ms)
    if promised < ALWAYS:
        later = committed_to_every_branch(metadata, START + 5_000)
        assert (
            not is_kept(world, metadata, first, promised + 1)
            or not is_kept(world, later, first, promised + 1)
            or any(each.is_branch and (each.min_snapshots_to_keep or 1) > 1 for each in refs.values())
        )
