"""What a conflict says: the table by its name, the operation that was called, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.errors import CommitConflictError, IcebergError, NoSuchTableError, UnknownColumnError
from hms_iceberg.table.table import Table
from tests.support.row_tables import MODES, NAME, ROW_ARROW, create, other_writer


def rows(*ids: int, amount: int = 5) -> pa.Table:
    return pa.table([list(ids), ["Oslo"] * len(ids), [amount] * len(ids)], schema=ROW_ARROW)


@pytest.fixture(params=MODES)
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    made = create(tmp_path, mode=request.param)
    made.append(rows(1, 2, 3))
    return made


CHANGES: dict[str, Callable[[Table], object]] = {
    "delete from": lambda table: table.delete("id = 1"),
    "overwrite": lambda table: table.overwrite(rows(9), "id = 1"),
    "update rows of": lambda table: table.update({"amount": 7}, "id = 1"),
    "upsert into": lambda table: table.upsert(rows(1, amount=8), ["id"]),
}


@pytest.mark.parametrize("action", CHANGES)
def test_a_conflict_names_the_table_and_the_operation_that_was_called(table: Table, action: str) -> None:
    other = other_writer(table)
    other.append(rows(1, 4))
    with pytest.raises(CommitConflictError, match=rf"^Cannot {action} table db\.events: a concurrent append") as caught:
        CHANGES[action](table)
    assert "the table at" not in str(caught.value)


def test_a_column_that_vanished_meanwhile_is_said_to_have_vanished(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(rows(1))
    other = other_writer(table)
    with other.update_schema() as update:
        update.delete_column("amount")
    with pytest.raises(CommitConflictError, match=r"table db\.events: .* a concurrent commit dropped or renamed a col"):
        table.delete("amount = 5")


@pytest.mark.parametrize("purged", [False, True])
def test_an_append_to_a_table_that_was_dropped_meanwhile_says_so(tmp_path: Path, purged: bool) -> None:
    table = create(tmp_path)
    table.append(rows(1))
    table.metastore.drop_table(NAME)  # type: ignore[attr-defined]
    if purged:
        for file in tmp_path.rglob("*.*"):
            file.unlink()
    with pytest.raises(NoSuchTableError, match=r"table db\.events: .*dropped meanwhile"):
        table.append(rows(2))
    assert purged or len(list(tmp_path.rglob("*.parquet"))) == 1


READS: dict[str, Callable[[Table], object]] = {
    "scan": lambda table: table.scan("amuont > 1").to_arrow(),
    "count": lambda table: table.scan("amuont > 1").count(),
    "delete": lambda table: table.delete("amuont > 1"),
    "incremental": lambda table: table.incremental_append_scan(row_filter="amuont > 1").to_arrow(),
    "changelog": lambda table: table.changelog_scan(row_filter="amuont > 1").to_arrow(),
}


@pytest.mark.parametrize("read", READS)
def test_an_unknown_column_in_a_filter_names_the_table(tmp_path: Path, read: str) -> None:
    table = create(tmp_path)
    table.append(rows(1))
    with pytest.raises(UnknownColumnError, match=r"'amuont'; did you mean 'amount'\?.* table db\.events"):
        READS[read](table)


WRONG: dict[str, Callable[[Table], object]] = {
    "snapshot": lambda table: table.scan(snapshot_id=7).to_arrow(),
    "ref": lambda table: table.scan().use_ref("absent"),
    "time": lambda table: table.scan().as_of(1),
    "expiry": lambda table: table.transaction().set_properties({"gc.enabled": "false"}).expire_snapshots().commit(),
    "rollback": lambda table: table.manage_snapshots().rollback_to_snapshot(7).commit(),
    "branch": lambda table: (
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "main").commit()
    ),  # type: ignore[union-attr]
    "tag": lambda table: table.manage_snapshots().remove_tag("absent").commit(),
    "partition": lambda table: table.update_spec().remove_field("absent").commit(),
    "version": lambda table: table.set_properties({"format-version": "1"}),
    "half a character": lambda table: table.set_properties({"a": "\ud800"}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_error_names_the_table_and_not_its_folder(tmp_path: Path, wrong: str) -> None:
    table = create(tmp_path)
    table.append(rows(1, 2))
    with pytest.raises(IcebergError) as caught:
        WRONG[wrong](table)
    assert "db.events" in str(caught.value) and str(tmp_path) not in str(caught.value)
