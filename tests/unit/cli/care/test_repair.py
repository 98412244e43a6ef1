"""`repair` on a terminal and for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from tests.unit.cli.conftest import Run


def test_a_repair_is_shown_first_and_done_when_asked_for(lake: Catalog, run: Run) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    assert run("repair", "db.t").out == "db.t: nothing to repair\nNothing was done.\n"
    for snapshot in table.snapshots()[:2]:
        Path(str(snapshot.manifest_list)).unlink()
    assert run("check", "db.t").code == 1

    shown = run("repair", "db.t")
    assert shown.code == 1 and shown.out.count("is not there. It is made anew") == 2
    assert "Nothing was done yet. To do it, add --apply" in shown.out
    done = run("repair", "db.t", "--apply", "--output", "json")
    assert done.code == 0 and [step["kind"] for step in done.json["steps"]] == ["manifest list"] * 2
    assert Path(done.json["journal"]).exists()
    assert run("check", "db.t").code == 0


def test_what_loses_something_has_to_be_accepted(lake: Catalog, run: Run) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    Path(table.metadata_location).write_text("{")
    refused = run("repair", "db.t", "--apply")
    assert refused.code == 1 and "only with accepted loss: The metadata file" in refused.out
    assert "To do what loses something as well, add --accept-loss" in refused.out
    assert run("repair", "db.t", "--apply", "--accept-loss").code == 0
    assert sorted(lake.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [0, 1]


def test_the_doctor_tells_what_he_looked_at(lake: Catalog, run: Run) -> None:
    said = run("doctor")
    assert said.code == 0 and "ok  storage: files can be written, read and listed below lake" in said.out
    told = run("doctor", "--output", "json").json
    assert {each["subject"] for each in told} >= {"Python", "Java", "memory", "storage", "storage's clock"}
