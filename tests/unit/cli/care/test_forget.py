"""`hms-iceberg forget`: the plan first, then the deed, what waits, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import is_about, verify_report
from tests.unit.cli.conftest import Run

NAME = "Zaphod-Q7x9K2mB"


@pytest.fixture
def visits(lake: Catalog) -> str:
    rows = pa.table({"id": [1, 2, 3, 4], "name": ["Ada", NAME, "Alan", NAME]})
    table = lake.create_table("db.visits", rows.schema)
    table.append(rows)
    table.delete("id = 4")
    return "db.visits"


def bytes_below(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())


def test_a_plan_is_shown_and_changes_nothing(visits: str, run: Run, lake: Catalog) -> None:
    before = lake.load_table(visits).metadata_location

    said = run("forget", visits, "--where", f"name = '{NAME}'")

    assert said.code == 0
    assert f"3 rows of 2 data files match name = '{NAME}'" in said.out
    assert "Nothing was done yet. To do it, add --yes" in said.out
    assert lake.load_table(visits).metadata_location == before


def test_rows_are_forgotten_at_once_and_the_report_is_signed(
    visits: str, run: Run, lake: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "key").write_bytes(b"a secret of many bytes")

    where = f"name = '{NAME}'"
    said = run("forget", visits, "--where", where, "--yes", "--after", "0", "--report", "r.json", "--sign-key", "key")

    assert said.code == 0, said
    report = json.loads((tmp_path / "r.json").read_text())
    assert verify_report(report, b"a secret of many bytes")
    assert is_about(report, where) and not is_about(report, "name = 'Ada'")
    assert NAME.encode() not in bytes_below(tmp_path / "lake")
    assert lake.load_table(visits).scan().to_arrow()["id"].to_pylist() == [1, 3]


def test_files_of_before_wait_until_they_are_due(visits: str, run: Run, tmp_path: Path) -> None:
    said = run("forget", visits, "--where", f"name = '{NAME}'", "--yes")
    assert "hms-iceberg forget db.visits --resume" in said.out
    assert NAME.encode() in bytes_below(tmp_path / "lake")
    assert run("forget", visits, "--where", "id = 1", "--yes").code != 0

    assert "go after" in run("forget", visits, "--resume").out
    assert NAME.encode() in bytes_below(tmp_path / "lake")

    assert "Done: " in run("forget", visits, "--resume", "--now").out
    assert NAME.encode() not in bytes_below(tmp_path / "lake")
    assert run("forget", visits, "--resume").out == "No erasure is open.\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "give --where, or --resume"),
        (("--where", "id = 1", "--now"), "--now belongs to --resume"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    visits: str, run: Run, options: tuple[str, ...], told: str
) -> None:
    said = run("forget", visits, *options)

    assert said.code == 2
    assert told in said.err
