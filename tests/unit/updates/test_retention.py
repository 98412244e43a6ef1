"""What an expiry keeps, beside the rules as the specification has them, branch by branch."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.scan.metadata_tables.history_tables import metadata_log_entries
from hms_iceberg.scan.metadata_tables.request import MetadataRequest
from hms_iceberg.spec.metadata.metadata_snapshots import remove_refs
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import (
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
)
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import metadata

NOW = 1_000


def snapshot(number: int, parent: int | None, at: int) -> Snapshot:
    return Snapshot(number, parent, number, at, f"mem://lists/{number}")


@st.composite
def tables(draw: st.DrawFn) -> TableMetadata:
    """A tree of snapshots, with branches and tags of any retention at them."""
    count = draw(st.integers(1, 12))
    snapshots = [snapshot(1, None, 0)]
    for number in range(2, count + 1):
        parent = draw(st.none() | st.integers(1, number - 1))
        snapshots.append(snapshot(number, parent, draw(st.integers(0, NOW))))
    refs = {"main": SnapshotRef(draw(st.integers(1, count)), max_snapshot_age_ms=draw(st.none() | st.integers(1, NOW)))}
    ages = st.none() | st.sampled_from([1, 300, 600, NOW])
    for number in range(draw(st.integers(0, 5))):
        target = draw(st.integers(1, count))
        if draw(st.booleans()):
            refs[f"t{number}"] = SnapshotRef(target, SnapshotRefType.TAG, max_ref_age_ms=draw(ages))
        else:
            least = draw(st.none() | st.integers(1, 4))
            refs[f"b{number}"] = SnapshotRef(target, SnapshotRefType.BRANCH, least, draw(ages), draw(ages))
    return replace(
        metadata(),
        snapshots=tuple(snapshots),
        refs=refs,
        current_snapshot_id=refs["main"].snapshot_id,
        last_sequence_number=count,
        last_updated_ms=NOW,
    )


def kept_by_rule(base: TableMetadata, refs: dict[str, SnapshotRef], older_than: int, last: int) -> set[int]:
    """One branch after the other, from its head back."""
    by_id = {each.snapshot_id: each for each in base.snapshots}
    kept, in_history = {ref.snapshot_id for ref in refs.values()}, set[int]()
    for ref in refs.values():
        if ref.is_tag:
            continue
        limit = older_than if ref.max_snapshot_age_ms is None else NOW - ref.max_snapshot_age_ms
        least = last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        each, position, goes_on = by_id.get(ref.snapshot_id), 0, True
        while each is not None:
            in_history.add(each.snapshot_id)
            goes_on = goes_on and (position < least or each.timestamp_ms >= limit)
            if goes_on:
                kept.add(each.snapshot_id)
            each, position = by_id.get(each.parent_snapshot_id or 0), position + 1
    return kept | {
        each.snapshot_id
        for each in base.snapshots
        if each.snapshot_id not in in_history and each.timestamp_ms >= older_than
    }


@given(tables(), st.integers(0, NOW + 1), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_an_expiry_keeps_what_each_branch_keeps_and_what_is_staged_and_young(
    base: TableMetadata, older_than: int, last: int
) -> None:
    by_id = {each.snapshot_id: each for each in base.snapshots}
    refs = {
        name: ref
        for name, ref in base.refs.items()
        if name == "main"
        or ref.max_ref_age_ms is None
        or NOW - by_id[ref.snapshot_id].timestamp_ms <= ref.max_ref_age_ms
    }
    after = ExpireSnapshots(older_than, last, at_ms=NOW).apply(base, FileWorkspace(InMemoryStorage()))
    assert after.refs == refs
    assert {each.snapshot_id for each in after.snapshots} == kept_by_rule(base, refs, older_than, last)


def test_several_refs_are_removed_at_once_and_main_takes_the_current_snapshot_with_it() -> None:
    one = snapshot(1, None, 0)
    refs = {name: SnapshotRef(1) for name in ("main", "a", "b")}
    base = replace(metadata(), snapshots=(one,), refs=refs, current_snapshot_id=1, last_sequence_number=1)
    assert remove_refs(base, {"a", "b"}).refs == {"main": SnapshotRef(1)}
    assert remove_refs(base, {"a", "b"}).current_snapshot_id == 1
    assert remove_refs(base, {"main", "a"}).current_snapshot_id is None


@given(st.lists(st.integers(0, 30), max_size=8), st.lists(st.integers(0, 30), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_the_log_of_metadata_files_names_the_last_snapshot_that_was_current_by_then_though_clocks_differ(
    log: list[int], files: list[int]
) -> None:
    snapshots = tuple(snapshot(number + 1, None, 0) for number in range(len(log)))
    base = replace(
        metadata(),
        snapshots=snapshots,
        snapshot_log=tuple(SnapshotLogEntry(number + 1, at) for number, at in enumerate(log)),
        metadata_log=tuple(MetadataLogEntry(f"mem://m/{at}", at) for at in files),
    )
    told = metadata_log_entries(MetadataRequest(base, InMemoryStorage())).frame["latest_snapshot_id"].to_list()
    expected = [([number + 1 for number, each in enumerate(log) if each <= at] or [None])[-1] for at in files]
    assert told == expected
