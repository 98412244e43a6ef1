"""A repair, and taking one back, beside commits of others; and that a dry run of either does nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitConflictError
from hms_iceberg.maintenance.repair import repair_table, undo_repair
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryLease, InMemoryMetastore
from tests.support.tables import QUICK

NAME = ("db", "events")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table whose first manifest list is damaged."""
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path / "db")})
    made = catalog.create_table("db.events", pa.schema([("id", pa.int64())]), properties=QUICK)
    for number in range(2):
        made.append(pa.table({"id": [number]}))
    Path(str(made.snapshots()[0].manifest_list)).write_bytes(b"damaged")
    return made


def state(table: Table) -> tuple[str, dict[str, bytes]]:
    """What the metastore names, and every file."""
    files = {str(path): path.read_bytes() for path in Path(table.location()).rglob("*") if path.is_file()}
    return table.metastore.load(NAME).metadata_location, files


def changed_before_the_lock(table: Table, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one commits once, before the next lock is had."""
    acquire: Callable[[InMemoryLease], None] = InMemoryLease.acquire

    def late(lease: InMemoryLease) -> None:
        monkeypatch.setattr(InMemoryLease, "acquire", acquire)
        table.catalog.load_table("db.events").set_properties({"theirs": value})  # type: ignore[union-attr]
        acquire(lease)

    monkeypatch.setattr(InMemoryLease, "acquire", late)


def test_a_dry_run_of_a_repair_and_of_its_way_back_tells_and_changes_nothing(table: Table) -> None:
    catalog = table.catalog
    assert catalog is not None
    before = state(table)
    planned = repair_table(catalog, NAME, accept_loss=True)
    assert planned.plan.steps and planned.journal is None and state(table) == before
    done = repair_table(catalog, NAME, dry_run=False, accept_loss=True)
    assert done.journal is not None and done.journal in state(table)[1]
    again = repair_table(catalog, NAME, dry_run=False, accept_loss=True)
    assert not again.plan.steps and again.journal is None
    repaired = state(table)
    told = undo_repair(catalog, NAME)
    assert state(table) == repaired
    assert undo_repair(catalog, NAME, dry_run=False) == told
    assert (told.identifier, told.journal, told.metadata_location) == (NAME, done.journal, before[0])
    assert state(table)[0] == before[0]


def test_a_table_that_was_changed_since_a_repair_was_planned_is_left_as_it_is(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = table.catalog
    assert catalog is not None
    changed_before_the_lock(table, "1", monkeypatch)
    with pytest.raises(CommitConflictError, match=r"Cannot repair table db\.events: it was changed meanwhile"):
        repair_table(catalog, NAME, dry_run=False, accept_loss=True)
    assert catalog.load_table("db.events").properties["theirs"] == "1"
    repair_table(catalog, NAME, dry_run=False, accept_loss=True)
    changed_before_the_lock(table, "2", monkeypatch)
    with pytest.raises(CommitConflictError, match=r"take back the repair of table db\.events: the table was changed"):
        undo_repair(catalog, NAME, dry_run=False)
    assert catalog.load_table("db.events").properties["theirs"] == "2"
