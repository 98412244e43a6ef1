"""Write, audit, publish: a `wap.id` stages what any write method does, a `wap.branch` sends it to a branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance import check_table
from hms_iceberg.table.table import Table
from tests.support.operations import BY_CITY, SCHEMA, begin, rows
from tests.support.row_tables import MODES, create

WAP = {"write.wap.enabled": "true"}
Properties = dict[str, str]

WRITES: dict[str, Callable[[Table, Properties], Any]] = {
    "append": lambda table, said: table.append(rows(4), said),
    "delete files": lambda table, said: table.delete("city = 'Köln'", said),
    "delete rows": lambda table, said: table.delete("id in (2, 11)", said),
    "overwrite": lambda table, said: table.overwrite(rows(5), "id = 1", said),
    "update": lambda table, said: table.update({"amount": 0}, "id = 1", said),
    "upsert": lambda table, said: table.upsert(rows(1, 7, amount=0), snapshot_properties=said),
    "replace partitions": lambda table, said: table.dynamic_partition_overwrite(rows(8), said),
}


def keys(table: Table, **of: Any) -> dict[int, int]:
    found = table.scan(**of).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["amount"].to_pylist(), strict=True))


@pytest.fixture(params=MODES)
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    made = create(tmp_path, mode=request.param, schema=SCHEMA, spec=BY_CITY, **WAP)
    begin(made)
    return made


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append(rows(4), branch=None),
        lambda table: table.delete("city = 'Köln'", branch=None),
        lambda table: table.delete("id in (2, 11)", branch=None),
        lambda table: table.overwrite(rows(5), "id = 1", branch=None),
        lambda table: table.update({"amount": 0}, "id = 1", branch=None),
        lambda table: table.upsert(rows(1, 7, amount=0), branch=None),
        lambda table: table.dynamic_partition_overwrite(rows(8), branch=None),
    ],
)
def test_a_write_to_no_branch_is_staged_and_published_later(tmp_path: Path, write: Callable[[Table], Any]) -> None:
    table = create(tmp_path, schema=SCHEMA, spec=BY_CITY)
    begin(table)
    before, head, refs = keys(table), table.current_snapshot(), table.refs()
    write(table)
    assert (keys(table), table.current_snapshot(), table.refs()) == (before, head, refs)
    staged = table.snapshots()[-1]
    assert head is not None and staged.parent_snapshot_id == head.snapshot_id
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    assert keys(table) != before


@pytest.mark.parametrize("name", WRITES)
def test_a_write_with_a_wap_id_is_staged_and_published_later(table: Table, name: str) -> None:
    before, head = keys(table), table.current_snapshot()
    WRITES[name](table, {"wap.id": "audit-1"})
    assert (keys(table), table.current_snapshot()) == (before, head)
    staged = table.snapshots()[-1]
    assert staged.summary["wap.id"] == "audit-1"
    assert head is not None and staged.parent_snapshot_id == head.snapshot_id
    after = keys(table, snapshot_id=staged.snapshot_id)
    assert after != before
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    assert keys(table) == after
    assert check_table(table, record_counts=True).findings == ()
    with pytest.raises(InvalidInputError, match="has it already"):
        table.manage_snapshots().cherrypick(staged.snapshot_id).commit()


@pytest.mark.parametrize("name", WRITES)
def test_a_write_with_a_wap_branch_goes_to_the_branch(table: Table, name: str) -> None:
    before = keys(table)
    WRITES[name](table, {"wap.branch": "audit", "job": "7"})
    assert keys(table) == before
    audit = table.snapshot_by_name("audit")
    assert audit is not None and audit.summary["job"] == "7" and "wap.branch" not in audit.summary
    after = keys(table, snapshot_id=audit.snapshot_id)
    assert after != before
    table.manage_snapshots().fast_forward_branch("main", "audit").commit()
    assert keys(table) == after


def test_added_files_are_staged_too(table: Table, tmp_path: Path) -> None:
    path = table.scan("id = 1").to_arrow()
    other = create(tmp_path / "other", schema=SCHEMA, spec=BY_CITY)
    other.append(path)
    (file,) = (task.file.file_path for task in other.scan().plan_files())
    table.add_files([file], {"wap.id": "2"})
    assert table.scan().count() == 6
    assert table.scan(snapshot_id=table.snapshots()[-1].snapshot_id).count() == 7


@pytest.mark.parametrize(
    ("said", "branch", "properties", "message"),
    [
        ({"wap.id": "1"}, None, {}, "write.wap.enabled is not true"),
        ({"wap.branch": "b"}, None, {"write.wap.enabled": "false"}, "write.wap.enabled is not true"),
        ({"wap.id": "1", "wap.branch": "b"}, None, WAP, "wap.branch is given too"),
        ({"wap.id": "1"}, "b", WAP, "the branch 'b' is given too"),
        ({"wap.branch": "b"}, "other", WAP, "the branch 'other' is given too"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, said: Properties, branch: str | None, properties: Properties, message: str
) -> None:
    table = create(tmp_path, schema=SCHEMA, **properties)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match=message):
        table.append(rows(1), said, branch=branch)
    with pytest.raises(InvalidInputError, match=message):
        table.overwrite(rows(1), snapshot_properties=said, branch=branch)
    assert sorted(tmp_path.rglob("*")) == files
