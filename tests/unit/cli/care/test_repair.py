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
    (told,) = done.json
    assert done.code == 0 and [step["kind"] for step in told["steps"]] == ["manifest list"] * 2
    assert Path(told["journal"]).exists()
    assert run("check", "db.t").code == 0
    assert run("repair", "db.t", "--undo").out.endswith("Nothing was done yet. To do it, add --apply\n")
    assert run("repair", "db.t", "--undo", "--apply").out.endswith("Done.\n")
    assert run("check", "db.t").code == 1
    refused = run("repair", "db.t", "--undo", "--apply")
    assert refused.code == 1 and "its last change is no repair" in refused.out


def test_tables_are_repaired_by_patterns_and_one_failure_is_not_anothers(lake: Catalog, run: Run) -> None:
    for name in ("a", "b", "whole"):
        table = lake.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]}))
        table.append(pa.table({"id": [2]}))
        if name == "a":
            for path in Path(table.metadata_location).parent.glob("*.metadata.json"):
                path.write_text("{")
        if name == "b":
            Path(str(table.snapshots()[0].manifest_list)).unlink()
    done = run("repair", "db.*", "--apply", "--output", "json")
    assert done.code == 1
    hopeless, mended, whole = done.json
    assert (hopeless["table"], "error" in hopeless or bool(hopeless["hopeless"])) == ("db.a", True)
    assert (mended["table"], len(mended["steps"])) == ("db.b", 1)
    assert (whole["table"], whole["steps"], whole["journal"]) == ("db.whole", [], None)
    assert run("check", "db.b", "db.whole").code == 0


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
