"""What people see: the main commands on terminals of 80 and 120 columns, word by word."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table

EXPECTED = Path(__file__).parent / "expected"
COMMANDS = {
    "list": ["list", "db"],
    "describe": ["describe", "db.t"],
    "schema": ["schema", "db.t"],
    "files": ["files", "db.t"],
    "scan": ["scan", "db.t"],
    "history": ["history", "db.t"],
    "list-refs": ["list-refs", "db.t"],
    "report": ["report", "db.t"],
    "diff": ["diff", "db.t", "end", "--rows"],
}


@pytest.fixture
def shown_table(lake: Catalog) -> Table:
    """The table `db.t` of two snapshots and a tag; ids of snapshots are of 19 digits, as most are."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("page", pa.string()), ("price", pa.float64())])
    while True:
        made = lake.create_table("db.t", schema)
        made.append(pa.table({"id": [1, 2], "page": ["/", None], "price": [0.5, float("nan")]}, schema))
        made.append(pa.table({"id": [3], "page": ["/buy and more of it"], "price": [None]}, schema))
        made.manage_snapshots().create_tag(made.snapshots()[0].snapshot_id, "end").commit()
        if all(len(str(each.snapshot_id)) == 19 for each in made.snapshots()):
            return made
        lake.purge_table("db.t")


def settled(text: str, table: Table) -> str:
    """A text without what differs from run to run."""
    for number, snapshot in enumerate(table.snapshots(), start=1):
        text = text.replace(str(snapshot.snapshot_id), f"{number}" * 19)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000", text)
    time = "2026-01-31 12:00:00.000"
    pattern = r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{3})?)?"
    text = re.sub(pattern, lambda found: time[:10] + found[0][10] + time[11 : len(found[0])], text)
    text = re.sub(r"\b\d\.\d+ KiB", "1.23 KiB", text)
    text = re.sub(r"\b1,?\d{3}\b", lambda found: "1,234" if "," in found[0] else "1234", text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


SHOWN = [(name, width) for name in COMMANDS for width in (80, 120) if (name, width) != ("files", 80)]  # folded names


@pytest.mark.parametrize(("name", "width"), SHOWN)
def test_a_terminal_shows(name: str, width: int, on_terminal: Any, shown_table: Table) -> None:
    said = on_terminal(width, *COMMANDS[name])

    assert said.code == 0
    assert all(len(line) <= width for line in said.out.splitlines())
    assert settled(said.out, shown_table) == (EXPECTED / f"{name}-{width}.txt").read_text()


def test_nothing_is_lost_on_a_narrow_terminal(on_terminal: Any, table: Table) -> None:
    table.append(
        pa.table(
            {"id": [4], "page": ["0123456789" * 9]},
            pa.schema([pa.field("id", pa.int64(), nullable=False), ("page", pa.string())]),
        )
    )

    lines = on_terminal(30, "scan", "db.t", "--filter", "id = 4").out.splitlines()
    assert all(len(line) <= 30 for line in lines)
    assert "0123456789" * 9 in "".join(line.removeprefix("page").strip() for line in lines)


def on_pty(*words: str, **environment: str) -> bytes:
    """What a command writes to a real terminal."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "hms_iceberg", "-p", "type=hadoop", "-p", "warehouse=lake", *words]
    subprocess.run(command, stdout=follower, check=True, env={**os.environ, "TERM": "xterm", **environment})
    os.close(follower)
    try:
        return os.read(leader, 100_000)
    finally:
        os.close(leader)


def test_a_real_terminal_gets_emphasis_unless_colours_are_unwanted(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert b"\x1b[1m" in on_pty("schema", "db.t")
    plain = on_pty("schema", "db.t", NO_COLOR="1")
    assert b"\x1b" not in plain
    assert b"id" in plain
