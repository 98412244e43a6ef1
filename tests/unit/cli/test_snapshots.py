"""`history`, `rollback`, `list-refs`, `branch`, `tag`, `diff` and `check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table


def ids(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.refresh().snapshots()]


def test_history_is_the_newest_first_with_what_each_did(run: Any, table: Table) -> None:
    first, second = ids(table)
    told = run("history", "db.t", "--output", "json").json
    assert [(row["snapshot_id"], row["parent_id"], row["added"], row["rows"]) for row in told] == [
        (second, first, 1, 3),
        (first, None, 2, 2),
    ]
    assert [(row["state"], row["refs"]) for row in told] == [("current", ["main"]), ("ancestor", [])]
    assert len(run("history", "db.t", "--limit", 1).out.splitlines()) == 2


def test_a_table_is_rolled_back_to_a_snapshot_a_tag_or_a_time(run: Any, table: Table) -> None:
    first, second = ids(table)
    assert run("rollback", "db.t", first).out == f"db.t is at snapshot {first}; it was at {second}.\n"
    assert table.refresh().metadata.current_snapshot_id == first
    states = {row["snapshot_id"]: row["state"] for row in run("history", "db.t", "--output", "json").json}
    assert states == {first: "current", second: None}
    assert run("rollback", "db.t", second).code == 1  # no ancestor

    table.append(pa.table({"id": [9]}, pa.schema([pa.field("id", pa.int64(), nullable=False)])))
    table.manage_snapshots().create_tag(first, "good").commit()
    assert run("rollback", "db.t", "good", "--output", "json").json["after"] == first
    assert run("rollback", "db.t", "--as-of", "2001-01-01").code == 1
    assert run("rollback", "db.t").code == 2
    assert "hms-iceberg history db.t" in run("rollback", "db.t", 17).err


def test_branches_and_tags_are_created_listed_and_removed(run: Any, table: Table) -> None:
    first, second = ids(table)
    words = ("--snapshot", first, "--max-age", "90d", "--keep-snapshots", 3, "--max-snapshot-age", "1h")
    assert run("branch", "create", "db.t", "audit", *words).out == f"Created branch: audit at snapshot {first}\n"
    assert run("tag", "create", "db.t", "end").out == f"Created tag: end at snapshot {second}\n"
    assert run("tag", "create", "db.t", "end").code == 1

    kept = {"max_ref_age_ms": 7_776_000_000, "min_snapshots_to_keep": 3, "max_snapshot_age_ms": 3_600_000}
    none = dict.fromkeys(kept)
    main = {"name": "main", "type": "branch", "snapshot_id": second, **none}
    audit = {"name": "audit", "type": "branch", "snapshot_id": first, **kept}
    tag = {"name": "end", "type": "tag", "snapshot_id": second, **none}
    assert run("list-refs", "db.t", "--output", "json").json == [audit, tag, main]
    assert run("list-refs", "db.t", "--type", "tag", "--output", "json").json == [tag]
    assert run("branch", "list", "db.t", "--output", "json").json == [audit, main]
    assert run("tag", "list", "db.t").out.splitlines()[1] == f"end\ttag\t{second}\tforever\tN/A\tN/A"

    assert run("tag", "remove", "db.t", "audit").code == 1
    assert run("branch", "remove", "db.t", "audit").out == "Removed branch: audit\n"
    assert run("tag", "remove", "db.t", "end").out == "Removed tag: end\n"
    assert list(table.refresh().refs()) == ["main"]


def test_a_diff_tells_files_and_rows(run: Any, table: Table) -> None:
    first, _ = ids(table)
    table.delete("id = 1")
    table.append(
        pa.table(
            {"id": [2], "page": ["/new"]},
            pa.schema([pa.field("id", pa.int64(), nullable=False), ("page", pa.string())]),
        )
    )
    table.delete("id = 2 and page is null")

    told = run("diff", "db.t", first, "--rows", "--files", "--identifier", "id", "--output", "json").json
    assert told["after"] == table.metadata.current_snapshot_id
    assert told["files"]["added"]["files"] == 2
    assert told["files"]["removed"]["records"] == 2
    changes = {(row["id"], row["page"], row["_change_type"]) for row in told["changed_rows"]}
    assert changes == {
        (1, "/", "DELETE"),
        (2, None, "UPDATE_BEFORE"),
        (2, "/new", "UPDATE_AFTER"),
        (3, "/buy", "INSERT"),
    }
    assert told["rows"] == {"INSERT": 1, "DELETE": 1, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1}
    assert {each["change"] for each in told["changed_files"]} == {"added", "removed"}

    said = run("diff", "db.t", first, "--rows", "--limit", 2)
    assert "Rows inserted\t2" in said.out.splitlines()
    assert said.err == "These are 2 of 4 changed rows. For more: --limit N\n"


def test_a_diff_leaves_out_rows_that_came_and_went_unless_asked(run: Any, table: Table) -> None:
    first, _ = ids(table)
    table.delete("id = 3")

    assert run("diff", "db.t", first, "--output", "json").json["rows"]["INSERT"] == 0
    assert run("diff", "db.t", first, "main", "--each-change", "--output", "json").json["rows"]["INSERT"] == 1
    assert run("diff", "db.t", "nothing").code == 1
    assert "ancestor" in run("diff", "db.t", "main", first).err


def test_a_diff_of_a_snapshot_with_itself_is_empty(run: Any, table: Table) -> None:
    told = run("diff", "db.t", "main", "--rows", "--output", "json").json
    assert told["changed_rows"] == []
    assert told["files"]["added"]["files"] == told["files"]["removed"]["files"] == 0


@pytest.fixture
def damaged(lake: Catalog, table: Table, tmp_path: Path) -> str:
    """The name of a second table, of which a data file is gone."""
    made = lake.create_table("db.u", table.schema())
    made.append(table.scan().to_arrow())
    for file in (tmp_path / "lake/db/u/data").iterdir():
        file.unlink()
    return "db.u"


def test_a_check_of_a_sound_table_ends_with_zero(run: Any, table: Table) -> None:
    said = run("check", "db.t", "--record-counts")
    assert (said.code, said.out) == (0, "db.t: ok (2 snapshots, 2 manifests, 2 files)\n")
    assert run("check", "db.t", "--output", "json").json[0]["findings"] == []


def test_a_check_of_a_pattern_finds_the_table_that_lost_a_file(run: Any, damaged: str) -> None:
    said = run("check", "db.*")
    assert said.code == 1
    assert said.out.splitlines()[0] == "db.t: ok (2 snapshots, 2 manifests, 2 files)"
    assert said.out.splitlines()[1] == "db.u: 1 problem (1 snapshot, 1 manifest, 1 file)"
    assert said.out.splitlines()[-1] == "2 tables checked, 1 problem in 1 of them."

    (sound, bad) = run("check", "db.*", "--output", "json").json
    assert sound["findings"] == []
    assert bad["findings"][0]["kind"] == "MissingFile"
    assert run("check", damaged, "--no-files").code == 0


def test_a_table_that_cannot_be_read_does_not_hide_the_others(run: Any, damaged: str, tmp_path: Path) -> None:
    (tmp_path / "lake/db/t/metadata/v3.metadata.json").write_text("{")

    first, second = run("check", "db.*", "--output", "json").json
    assert first["findings"][0]["kind"] == "CorruptMetadataError"
    assert second["findings"][0]["kind"] == "MissingFile"


def test_a_pattern_that_names_nothing_is_an_error(run: Any, table: Table) -> None:
    assert "No Iceberg table matches 'dc.*'" in run("check", "dc.*").err
    assert run("check", "db.none").code == 1
    assert run("check").code == 2


def test_a_report_is_a_page_or_json_and_names_the_tables_it_cannot_show(
    run: Any, lake: Catalog, table: Table, tmp_path: Path
) -> None:
    told = run("report", "db.t", "--output", "json").json
    assert [(each["name"], each["rows"], len(each["snapshots"])) for each in told] == [("db.t", 3, 2)]

    lake.create_table("db.broken", table.schema()).append(table.scan().to_arrow())
    broken = lake.load_table("db.broken").current_snapshot()
    assert broken is not None and broken.manifest_list is not None
    Path(broken.manifest_list.removeprefix("file:")).unlink()
    said = run("report", "db.*", "--to", tmp_path / "page.html")
    assert said.code == 1
    assert "Not shown: db.broken" in said.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>db.t</h2>" in page
    assert "Tables that could not be read" in page
    assert run("report", "no.*").code == 1
