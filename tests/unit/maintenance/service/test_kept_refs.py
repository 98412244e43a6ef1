"""Tags of days and months come and go, branches without use go, and nothing else does."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import CommitConflictError
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.service.assessment import needs_of
from hms_iceberg.maintenance.service.old_rows import LOOKED_FOR
from hms_iceberg.maintenance.service.period_tags import period_tags
from hms_iceberg.maintenance.service.service import MaintenanceService
from hms_iceberg.maintenance.service.unused_branches import unused_branches
from hms_iceberg.maintenance_policy import Age, Policy
from hms_iceberg.spec.data_types import LongType, NestedField, TimestampType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from tests.support.hdfs_path import copy_folder, local_path, remove_folder
from tests.support.interruptions import InterruptingStorage, Killed

_QUIET = {
    "maintenance.remove-orphans": "false",
    "maintenance.compact": "false",
    "maintenance.expire-snapshots": "false",
}
_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "seen", TimestampType()))
_BEGIN = datetime(2026, 1, 29, 1, tzinfo=timezone.utc)


class Warehouse:
    """A catalog with a table, at a time that the test sets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog = load_catalog("files", type="hadoop", warehouse=str(folder))
        self.catalog.create_namespace("web")
        self.now = _BEGIN
        monkeypatch.setattr(time, "time_ns", lambda: self.now_ms() * 1_000_000)
        self.history: list[tuple[datetime, int]] = []

    def table(self, **properties: str) -> Table:
        return self.catalog.create_table("web.visits", _SCHEMA, properties=_QUIET | properties)

    def append(self, table: Table, branch: str = "main") -> int:
        """Another snapshot, at the warehouse's time."""
        table.append(pa.table({"id": [len(self.history)], "seen": [self.now.replace(tzinfo=None)]}), branch=branch)
        made = table.metadata.refs[branch].snapshot_id
        if branch == "main":
            self.history.append((self.now, made))
        return made

    def now_ms(self) -> int:
        """The warehouse's time."""
        return int(self.now.timestamp() * 1000)

    def run(self, dry_run: bool = False) -> list[tuple[str, str, str]]:
        """The steps of a run: action, outcome and why."""
        report = MaintenanceService(self.catalog, clock=lambda: self.now.timestamp()).run(dry_run)
        return [(step.action, step.outcome, step.why) for step in report.steps]


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    return Warehouse(tmp_path, monkeypatch)


def refs_of(table: Table) -> dict[str, int]:
    """Tags and branches beside main, with their snapshots."""
    return {name: ref.snapshot_id for name, ref in table.refresh().metadata.refs.items() if name != "main"}


def expected(warehouse: Warehouse, zone: str, daily: int, monthly: int) -> dict[str, int]:
    """The tags that a plain reading of the history gives: the last snapshot of each of the newest periods."""
    found: dict[str, int] = {}
    for kind, form, kept in (("daily", "%Y-%m-%d", daily), ("monthly", "%Y-%m", monthly)):
        last = {when.astimezone(ZoneInfo(zone)).strftime(form): made for when, made in warehouse.history}
        last.pop(warehouse.now.astimezone(ZoneInfo(zone)).strftime(form), None)
        found |= {f"{kind}-{period}": last[period] for period in sorted(last)[len(last) - min(kept, len(last)) :]}
    return found


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_tags_are_of_the_last_snapshots_of_the_newest_days_and_months(warehouse: Warehouse, zone: str) -> None:
    settings = {"hms_iceberg.tags.daily": "3", "hms_iceberg.tags.monthly": "2", "hms_iceberg.time-zone": zone}
    table = warehouse.table(**settings)
    mine = {}
    for step, hours in enumerate((0, 5, 3, 20, 30, 1, 47, 3, 26, 800, 5, 24, 700, 2, 31)):
        warehouse.now += timedelta(hours=hours)
        warehouse.append(table)
        if step == 4:
            table.manage_snapshots().create_tag(None, "daily-best").create_tag(None, "daily-2025-01-01").commit()
            mine = refs_of(table).fromkeys(["daily-best", "daily-2025-01-01"], table.metadata.current_snapshot_id)
        before = refs_of(table)
        planned = warehouse.run(dry_run=True)
        assert refs_of(table) == before
        done = warehouse.run()
        assert [each[0] for each in planned] == [each[0] for each in done]
        assert refs_of(table) == expected(warehouse, zone, 3, 2) | mine
        version = table.metadata_location
        assert warehouse.run() == [] and table.refresh().metadata_location == version
    assert len(expected(warehouse, zone, 3, 2)) == 5


def test_a_tag_that_somebody_made_moved_or_dropped_is_theirs(warehouse: Warehouse) -> None:
    table = warehouse.table(**{"hms_iceberg.tags.daily": "2"})
    first = warehouse.append(table)
    table.manage_snapshots().create_tag(first, "daily-2026-01-30").commit()
    for _ in range(4):
        warehouse.append(table)
        warehouse.now += timedelta(days=1)
    warehouse.run()  # 30 is there already
    assert set(refs_of(table)) == {"daily-2026-01-30", "daily-2026-02-01", "daily-2026-01-31"}
    table.manage_snapshots().replace_tag("daily-2026-01-31", first).remove_tag("daily-2026-02-01").commit()
    assert warehouse.run() == []
    for _ in range(4):
        warehouse.append(table)
        warehouse.now += timedelta(days=1)
    warehouse.run()
    assert refs_of(table).items() >= {"daily-2026-01-30": first, "daily-2026-01-31": first}.items()
    assert set(refs_of(table)) == {"daily-2026-01-30", "daily-2026-01-31", "daily-2026-02-04", "daily-2026-02-05"}


def test_tags_stay_without_a_policy_and_go_if_none_is_to_be_kept(warehouse: Warehouse) -> None:
    table = warehouse.table(**{"hms_iceberg.tags.daily": "2"})
    warehouse.append(table)
    warehouse.now += timedelta(days=1)
    warehouse.run()
    made = refs_of(table)
    assert list(made) == ["daily-2026-01-29"]
    table.remove_properties("hms_iceberg.tags.daily")
    assert warehouse.run() == [] and refs_of(table) == made
    table.set_properties({"hms_iceberg.tags.daily": "0"})
    assert warehouse.run() == [("tag_periods", "done", "drops daily-2026-01-29")]
    assert refs_of(table) == {}
    assert not [name for name in table.properties if name.startswith("maintenance.state.tag")]


def test_tags_outlive_the_age_of_refs_and_of_snapshots(warehouse: Warehouse) -> None:
    aged = {"history.expire.max-ref-age-ms": "1", "history.expire.max-snapshot-age-ms": "1"}
    table = warehouse.table(**aged, **{"hms_iceberg.tags.daily": "2", "maintenance.expire-snapshots": "true"})
    first = warehouse.append(table)
    warehouse.now += timedelta(days=1)
    warehouse.append(table)
    warehouse.now += timedelta(hours=1)
    # The tag is made before the snapshot expires, and a dry run counts on it.
    assert [each[0] for each in warehouse.run(dry_run=True)] == ["tag_periods"]
    assert [each[0] for each in warehouse.run()] == ["tag_periods"]
    warehouse.now += timedelta(days=300)
    warehouse.run()
    assert table.refresh().scan().use_ref("daily-2026-01-29").to_arrow()["id"].to_pylist() == [0]
    assert refs_of(table)["daily-2026-01-29"] == first


def test_a_tag_that_somebody_takes_while_it_is_made_is_theirs(warehouse: Warehouse) -> None:
    table = warehouse.table()
    first = warehouse.append(table)
    warehouse.append(table)
    warehouse.now += timedelta(days=1)
    found = period_tags(table.metadata, Policy(tags_daily=1), warehouse.now_ms())
    warehouse.catalog.load_table("web.visits").manage_snapshots().create_tag(first, "daily-2026-01-29").commit()
    with pytest.raises(CommitConflictError, match="daily-2026-01-29"):
        found.commit(table)
    assert refs_of(table) == {"daily-2026-01-29": first}


def test_a_branch_goes_when_it_was_seen_at_the_same_snapshot_for_so_long(warehouse: Warehouse) -> None:
    table = warehouse.table(**{"hms_iceberg.branches.unused-age": "3d"})
    warehouse.append(table)
    warehouse.now += timedelta(days=30)
    table.manage_snapshots().create_branch(None, "young").create_branch(None, "busy").create_branch(
        None, "own", max_ref_age_ms=10**12
    ).create_tag(None, "tag").commit()
    (noted,) = warehouse.run()
    assert noted[2] == "notes at which snapshot it sees busy, young"
    assert warehouse.run() == []
    warehouse.now += timedelta(days=2)
    warehouse.append(table, "busy")
    warehouse.run()
    warehouse.now += timedelta(days=1)
    assert [each[2] for each in warehouse.run(dry_run=True)] == ["drops young"]
    assert set(refs_of(table)) == {"young", "busy", "own", "tag"}
    assert [each[2] for each in warehouse.run()] == ["drops young"]
    assert set(refs_of(table)) == {"busy", "own", "tag"} and warehouse.run() == []
    table.manage_snapshots().create_branch(None, "young").commit()
    warehouse.now += timedelta(days=2)
    warehouse.run()
    assert set(refs_of(table)) == {"young", "own", "tag"}  # made anew, whose time begins anew
    table.manage_snapshots().remove_branch("young").commit()
    assert [each[2] for each in warehouse.run()] == ["forgets what it noted of branches that are gone"]
    assert not [name for name in table.refresh().properties if name.startswith("maintenance.state.")]


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("by", ["property", "snapshot"])
def test_a_branch_for_write_audit_publish_stays_unless_it_is_asked_for(
    warehouse: Warehouse, by: str, asked: bool
) -> None:
    asks = {"hms_iceberg.branches.wap": "true"} if asked else {}
    table = warehouse.table(**{"hms_iceberg.branches.unused-age": "1h", "write.wap.enabled": "true"}, **asks)
    warehouse.append(table)
    table.append(pa.table({"id": [7], "seen": [datetime(2026, 1, 1)]}), snapshot_properties={"wap.id": "audit 1"})
    staged = max(table.snapshots(), key=lambda each: each.sequence_number).snapshot_id
    table.manage_snapshots().create_branch(staged, "staged").create_branch(None, "plain").commit()
    if by == "snapshot":
        table.set_properties({"write.wap.enabled": "false"})
    for _ in range(2):
        warehouse.run()
        warehouse.now += timedelta(hours=2)
    left = {"staged", "plain"} if by == "property" else {"staged"}
    assert set(refs_of(table)) == (set() if asked else left)


def test_a_kill_at_any_step_leaves_nothing_odd_and_the_next_run_finishes(warehouse: Warehouse, tmp_path: Path) -> None:
    settings = {"retain.column": "seen", "retain.age": "3d", "tags.daily": "2", "branches.unused-age": "1h"}
    mode = {"write.delete.mode": "merge-on-read"}
    table = warehouse.table(**mode, **{f"hms_iceberg.{name}": text for name, text in settings.items()})
    for _ in range(5):
        warehouse.append(table)
        warehouse.now += timedelta(days=1)
    table.append(pa.table({"id": [8, 9], "seen": [datetime(2026, 1, 1), datetime(2026, 2, 9)]}))
    table.manage_snapshots().create_branch(None, "unused").commit()
    unused_branches(table.metadata, Policy(branches_unused_age=Age(1, "h")), warehouse.now_ms()).commit(table)
    warehouse.now += timedelta(hours=5)
    begun = whole(table)
    folder, kept = local_path(table.location()), tmp_path / "kept"
    copy_folder(folder, kept)
    steps, step = None, 0
    while steps is None or step < steps:
        storage = InterruptingStorage(None if steps is None else step, _kill)
        opened = FileSystemTables(storage=storage).load(table.location())
        if steps is None:
            care(opened, warehouse)
            steps, done = storage.steps, (whole(table), refs_of(table), states_of(table))
            assert done[0] != begun and set(done[1]) == {"daily-2026-02-01", "daily-2026-02-02"}
        else:
            with pytest.raises(Killed):
                care(opened, warehouse)
            assert whole(table) in (begun, done[0])
            care(FileSystemTables().load(table.location()), warehouse)
            assert (whole(table), refs_of(table), states_of(table)) == done
            assert check_table(table).findings == ()
            step += 1
        remove_folder(folder)
        copy_folder(kept, folder)
    assert steps > 10


def care(table: Table, warehouse: Warehouse) -> None:
    """Does what a policy wants, as the service does it."""
    for action in ("delete_old_rows", "tag_periods", "drop_unused_branches"):
        policy = Policy().of_table(table.refresh().properties, "visits")
        for need in needs_of(table, policy, clock=lambda: warehouse.now.timestamp()):
            if need.action == action:
                need.run(lambda: False)


def states_of(table: Table) -> dict[str, str]:
    """What the service noted, but for the ids of new snapshots."""
    state = {name: text for name, text in table.refresh().properties.items() if name.startswith("maintenance.state.")}
    return state | {LOOKED_FOR: state[LOOKED_FOR].partition(" ")[2]}


def whole(table: Table) -> list[Any]:
    """All rows of main."""
    return table.refresh().scan().to_arrow().sort_by("id").to_pylist()


def _kill() -> None:
    raise Killed
