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
from hms_iceberg.cli.commands import COMMANDS
from hms_iceberg.table import Table

EXPECTED = Path(__file__).parent / "expected"
# One after the other, on one table.
SHOWN = """
list
list db
describe db.t
schema db.t
spec db.t
location db.t
uuid db.t
files db.t
scan db.t
history db.t
list-refs db.t
report db.t
diff db.t end --rows
properties set table db.t owner shop
properties get table db.t owner
properties remove table db.t owner
branch create db.t audit
branch list db.t
branch remove db.t audit
tag create db.t year-end
tag list db.t
tag remove db.t year-end
append db.t more.csv
check db.t
repair db.t
maintain --table db.t --dry-run
rewrite-data-files db.t
rewrite-manifests db.t
rewrite-position-deletes db.t
convert-equality-deletes db.t
remove-dangling-deletes db.t
compute-table-stats db.t
compute-partition-stats db.t
expire-snapshots db.t
remove-orphan-files db.t --dry-run
rollback db.t end
create table db.made --column id:long
drop table db.made --purge
version
"""
# These tell sentences, which a terminal folds.
SENTENCES = frozenset(("maintain", "compute-table-stats", "remove-orphan-files", "rollback"))
# Of these the output is tested where the server is that they need; or it differs from machine to machine.
ELSEWHERE = frozenset(
    [
        *(
            "compile-bridge",
            "completion",
            "connect",
            "demo",
            "docs",
            "doctor",
            "locks",
            "metastore",
            "migrate",
            "register",
            "rename",
        ),
        *("forget", "ingest", "rest", "rotate-keys"),
        *("rewrite-table-path", "rollback-migration", "sql", "thriftserver", "upgrade", "verify"),
    ]
)


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
    text = re.sub(r"\b(?!(\d)\1{18})\d{16,19}\b", "9" * 19, text)  # of snapshots that came later
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000", text)
    time = "2026-01-31 12:00:00.000"
    pattern = r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{3})?)?"
    text = re.sub(pattern, lambda found: time[:10] + found[0][10] + time[11 : len(found[0])], text)
    text = re.sub(r"\b\d\.\d+ KiB", "1.23 KiB", text)
    text = re.sub(r"\b1,?\d{3}\b", lambda found: "1,234" if "," in found[0] else "1234", text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows(width: int, on_terminal: Any, shown_table: Table) -> None:
    Path("more.csv").write_text("id,page,price\n4,/sell,1.5\n")
    told = []
    for line in SHOWN.strip().splitlines():
        if (line, width) == ("files db.t", 80):
            continue  # where a name is folded depends on the folder's length
        said = on_terminal(width, *line.split())
        assert line.split()[0] in SENTENCES or all(len(each) <= width for each in said.out.splitlines()), line
        told.append(f"$ hms-iceberg {line}\n{settled(said.out + said.err, shown_table)}")
    assert "\n".join(told) == (EXPECTED / f"{width}.txt").read_text()


def test_every_command_is_shown_or_tested_elsewhere() -> None:
    assert {line.split()[0] for line in SHOWN.split("\n") if line} == COMMANDS.keys() - ELSEWHERE


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
