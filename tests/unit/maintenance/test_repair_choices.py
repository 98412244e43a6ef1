"""Where a repair chooses between two candidates, no commit is lost unless that is accepted; whole tables compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import CorruptMetadataError, StorageDeniedError
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.repair import repair_table, undo_repair
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64())])
NAME = ("db", "events")
Members = dict[str, Any]


class Folder:
    """A table of a folder catalog with three appends, each of a row of its number, and one deletion before the last."""

    def __init__(self, warehouse: Path, version: int = 2) -> None:
        self.catalog: Catalog = load_catalog("files", type="hadoop", warehouse=str(warehouse))
        self.catalog.create_namespace("db")
        properties = {**QUICK, "format-version": str(version)}
        table = self.catalog.create_table("db.events", ARROW, properties=properties)
        self.other = self.catalog.create_table("db.other", ARROW, properties=properties)
        for number in (1, 2, 3):
            table.append(pa.table({"id": [number, number + 10]}, schema=ARROW))
            if number == 2:
                table.delete("id = 1")
        self.other.append(pa.table({"id": [99]}, schema=ARROW))
        self.folder = warehouse / "db" / "events" / "metadata"
        self.hint = self.folder / "version-hint.text"
        self.rows = self.ids()

    def ids(self) -> list[int]:
        return ids(self.catalog.load_table("db.events"))

    def check(self) -> list[str]:
        try:
            report = check_table(self.catalog.load_table("db.events"))
        except CorruptMetadataError as error:
            return [str(error)]
        return [str(finding) for finding in report.findings]

    def file(self, number: int) -> Path:
        return self.folder / f"v{number}.metadata.json"

    def change(self, number: int, change: Callable[[Members], object]) -> None:
        members = json.loads(self.file(number).read_text())
        change(members)
        self.file(number).write_text(json.dumps(members))


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _snapshot(members: Members, place: int) -> int:
    return int(sorted(members["snapshots"], key=lambda each: each["timestamp-ms"])[place]["snapshot-id"])


def _main(place: int) -> Callable[[Members], None]:
    return lambda members: members["refs"]["main"].update({"snapshot-id": _snapshot(members, place)})


def _current(place: int) -> Callable[[Members], None]:
    return lambda members: members.update({"current-snapshot-id": _snapshot(members, place)})


def _both(*changes: Callable[[Members], object]) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        for each in changes:
            each(members)

    return change


def _no_parents(members: Members) -> None:
    for each in members["snapshots"]:
        each.pop("parent-snapshot-id", None)


def _main_went_back(members: Members) -> None:
    members["snapshot-log"].append({"timestamp-ms": members["last-updated-ms"], "snapshot-id": _snapshot(members, 0)})


NEWEST, LOST = (2, 3, 11, 12, 13), ()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("change", "loses"),
    [
        (_current(0), None),
        (_main(0), None),
        (_current(-2), None),
        (_both(_current(0), _main(1)), None),  # the snapshot log tells of the newest
        (_both(_current(0), _no_parents), "what snapshot"),  # nothing says which came first
        (_both(_main(0), _main_went_back), "went back to snapshot"),
        (lambda members: members.update({"current-snapshot-id": 17}), None),  # no snapshot came after main's
        (_both(_main(0), lambda members: members.update({"current-snapshot-id": 17})), None),
        (_both(lambda members: members["refs"]["main"].update({"snapshot-id": 17}), _current(0)), None),
    ],
)
def test_a_snapshot_never_loses_to_its_ancestor(
    tmp_path: Path, version: int, change: Callable[[Members], None], loses: str | None
) -> None:
    folder = Folder(tmp_path, version)
    folder.change(5, change)
    assert "Cannot read table metadata" in folder.check()[0]
    plan = repair_table(folder.catalog, NAME).plan
    (step,) = plan.refused if loses else plan.steps
    assert loses is None or loses in str(step.loses)
    repair_table(folder.catalog, NAME, dry_run=False, accept_loss=bool(loses))
    assert folder.ids() == folder.rows == list(NEWEST) and folder.check() == []
    table = folder.catalog.load_table("db.events")
    assert table.history()[-1].snapshot_id == table.metadata.current_snapshot_id


def test_of_two_snapshots_beside_each_other_one_is_taken_only_with_consent_or_if_both_hold_the_same(
    folder: Folder,
) -> None:
    table = folder.catalog.load_table("db.events")
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_branch(first, "audit").commit()
    table.append(pa.table({"id": [50]}, schema=ARROW), branch="audit")
    number = int(table.metadata_location.rpartition("/v")[2].partition(".")[0])
    beside = table.refresh().metadata.refs["audit"].snapshot_id
    folder.change(number, lambda members: members.update({"current-snapshot-id": beside}))
    (step,) = repair_table(folder.catalog, NAME).plan.refused
    assert f"what snapshot {beside} changed, 3 rows of 2 data files among it" in str(step.loses)
    repair_table(folder.catalog, NAME, dry_run=False, accept_loss=True)
    assert folder.ids() == folder.rows  # the snapshot log tells of that one

    table = folder.catalog.load_table("db.events")
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "same").commit()
    table.rewrite_manifests().commit()
    table.refresh()
    number = int(table.metadata_location.rpartition("/v")[2].partition(".")[0])

    def beside_each_other(members: Members) -> None:
        newest = members["current-snapshot-id"]
        for each in members["snapshots"]:
            if each["snapshot-id"] == newest:
                each["parent-snapshot-id"] = first
        members["refs"]["main"]["snapshot-id"] = members["refs"]["same"]["snapshot-id"]

    folder.change(number, beside_each_other)
    (step,) = repair_table(folder.catalog, NAME, dry_run=False).plan.steps
    assert step.loses is None and folder.ids() == folder.rows


def _hint(text: str | None) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        folder.hint.unlink()
        if text is not None:
            folder.hint.write_text(text)

    return change


def _without(*numbers: int, hint: str = "5") -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        _hint(hint)(folder)
        for number in numbers:
            folder.file(number).unlink()

    return change


# The damage, what a reader is told (None: it reads the newest rows), the rows after the repair, and its loss.
HINTS = {
    "one ahead": (_hint("9"), "names version 9", NEWEST, "up to version 9"),
    "one that is deleted": (_without(5), "names version 5", (2, 11, 12), "up to version 5"),
    "an old one that is deleted": (_without(2, hint="2"), "names version 2", NEWEST, None),
    "a negative one": (_hint("-1"), "names version -1", NEWEST, None),
    "one of two lines": (_hint("9\nand more"), "names version 9", NEWEST, "up to version 9"),
    "an old one": (_hint("2"), None, NEWEST, None),
    "no number": (_hint("v5"), None, NEWEST, None),
    "digits with a line between": (_hint("1_0"), None, NEWEST, None),
    "nothing": (_hint(""), None, NEWEST, None),
    "none": (_hint(None), None, NEWEST, None),
}


@pytest.mark.parametrize("kind", HINTS)
def test_a_version_that_is_missing_is_not_passed_over_in_silence(kind: str, folder: Folder) -> None:
    damage, said, rows, loses = HINTS[kind]
    damage(folder)
    if said is None:
        assert folder.ids() == folder.rows and folder.check() == []
        assert repair_table(folder.catalog, NAME).plan.is_sound
        return
    for read in (folder.ids, lambda: folder.catalog.load_table("db.events")):
        with pytest.raises(CorruptMetadataError, match=f"{said}.*hms-iceberg repair"):
            read()
    assert said in folder.check()[0]
    plan = repair_table(folder.catalog, NAME).plan
    (step,) = plan.refused if loses else plan.steps
    assert step.kind == "version hint" and (loses is None or loses in str(step.loses))
    repair_table(folder.catalog, NAME, dry_run=False, accept_loss=bool(loses))
    assert folder.ids() == list(rows) and folder.check() == []
    undo_repair(folder.catalog, NAME, dry_run=False)
    assert folder.ids() == list(rows)
    folder.catalog.load_table("db.events").append(pa.table({"id": [60]}, schema=ARROW))
    assert folder.ids() == [*rows, 60]


def test_a_commit_that_a_later_version_would_hide_is_refused(folder: Folder) -> None:
    folder.file(4).unlink()
    folder.hint.write_text("3")
    assert "the versions in between are missing" in folder.check()[0]
    table = folder.catalog.load_table("db.events")
    with pytest.raises(CorruptMetadataError, match=r"version 4 is missing before .*v5.*repair"):
        table.append(pa.table({"id": [60]}, schema=ARROW))
    (step,) = repair_table(folder.catalog, NAME, dry_run=False).plan.steps
    assert step.loses is None and folder.ids() == folder.rows and folder.check() == []


def test_a_later_version_that_does_not_come_of_the_one_that_is_read_is_taken_only_with_consent(folder: Folder) -> None:
    folder.file(4).unlink()
    folder.hint.write_text("3")
    folder.change(5, lambda members: members.update({"metadata-log": []}))
    (step,) = repair_table(folder.catalog, NAME).plan.refused
    assert "of which the newest one does not come" in str(step.loses)


@pytest.mark.parametrize("denied", ["read", "list"])
def test_a_hint_or_folder_that_may_not_be_looked_at_is_an_error_and_no_absent_table(
    denied: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    if denied == "list":
        folder.hint.unlink()

    def refuse(storage: ArrowStorage, location: str) -> Any:
        raise StorageDeniedError(f"You may not {denied} {location}.")

    monkeypatch.setattr(ArrowStorage, denied, refuse)
    location = str(folder.folder.parent)
    for ask in (FileSystemTables().load, FileSystemTables().exists, FileSystemTables().drop):
        with pytest.raises(StorageDeniedError, match=denied):
            ask(location)


def _of_another_table(folder: Folder) -> None:
    shutil.copyfile(folder.other.metadata_location, folder.file(5))


def _of_another_uuid(folder: Folder) -> None:
    folder.change(5, lambda members: members.update({"table-uuid": "11111111-2222-3333-4444-555555555555"}))


def _of_another_place(folder: Folder) -> None:
    folder.change(5, lambda members: members.update({"location": f"{members['location']}-elsewhere"}))


@pytest.mark.parametrize("exchange", [_of_another_table, _of_another_uuid, _of_another_place])
def test_metadata_of_another_table_in_a_folder_is_found_and_goes_only_with_consent(
    exchange: Callable[[Folder], None], folder: Folder
) -> None:
    exchange(folder)
    (found,) = folder.check()
    assert "is not of the table at" in found or "is that of another table: its UUID" in found
    plan = repair_table(folder.catalog, NAME).plan
    assert not plan.steps and "goes back to" in str(plan.refused[0]) and plan.refused[0].loses
    repair_table(folder.catalog, NAME, dry_run=False, accept_loss=True)
    assert folder.ids() == [2, 11, 12] and folder.check() == []


def test_a_table_whose_folder_is_spelled_otherwise_is_its_own(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    for spelled in (f"{tmp_path}/./x/..", f"file://{tmp_path}", f"file:{tmp_path}//", f"{tmp_path}/link"):
        catalog = load_catalog("again", type="hadoop", warehouse=spelled)
        table = catalog.load_table("db.events")
        assert ids(table) == folder.rows and check_table(table).ok
        assert repair_table(catalog, NAME).plan.is_sound
