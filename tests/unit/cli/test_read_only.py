"""On a warehouse that this user may only read, reading commands work, and writing ones say so and change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table
from tests.support.hive_warehouse import all_files
from tests.support.rights import AS_USER, without_right_to_write

RUN = """
import contextlib, io, json, sys
from hms_iceberg.cli.main import main
answers = []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["-p", "type=hadoop", "-p", "warehouse=lake", *words])
    answers.append((code, out.getvalue(), err.getvalue()))
json.dump(answers, sys.stdout)
"""
READING = (
    "list db",
    "describe db.t",
    "schema db.t",
    "spec db.t",
    "location db.t",
    "uuid db.t",
    "properties get table db.t",
    "files db.t",
    "history db.t",
    "list-refs db.t",
    "branch list db.t",
    "scan db.t",
    "scan db.t --count --filter id=1",
    "diff db.t old main --rows",
    "check db.*",
    "repair db.*",
    "report db.t",
    "maintain --table db.* --dry-run",
    "expire-snapshots db.t --retain-last 1 --older-than 2100-01-01 --dry-run",
    "remove-orphan-files db.t --older-than 2100-01-01 --nobody-writes --dry-run",
)
WRITING = (
    "append db.t more.csv",
    "properties set table db.t a b",
    "branch create db.t audit",
    "tag create db.t now",
    "tag remove db.t old",
    "rollback db.t old",
    "create table db.u --column id:long",
    "create namespace other",
    "drop table db.t --purge",
    "expire-snapshots db.t --retain-last 1 --older-than 2100-01-01",
    "remove-orphan-files db.t --older-than 2100-01-01 --nobody-writes",
    "rewrite-data-files db.t --option rewrite-all=true",
    "rewrite-manifests db.t",
    "compute-table-stats db.t",
    "maintain --table db.t",
)


@pytest.fixture
def readable(lake: Catalog, table: Table, tmp_path: Path) -> Iterator[Path]:
    """`db.t` with a tag and an orphan, in folders and files that nobody may write to."""
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "old").commit()
    table.append(table.scan("id = 1").to_arrow())
    (tmp_path / "lake/db/t/data/orphan.parquet").write_bytes(b"PAR1")
    (tmp_path / "more.csv").write_text("id,page,price\n4,/,1\n")
    with without_right_to_write(tmp_path / "lake"):
        yield tmp_path / "lake"


def answers(lines: tuple[str, ...]) -> dict[str, Any]:
    """What each command answers to a user without rights: exit code, output and errors."""
    command = [*AS_USER, sys.executable, "-c", RUN]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    given = json.dumps([line.split() for line in lines])
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return dict(zip(lines, json.loads(done.stdout), strict=True))


def test_who_may_only_read_reads_and_is_told_which_right_a_change_of_which_table_needs(readable: Path) -> None:
    before = all_files(readable)

    found = answers(READING + WRITING)

    assert {line: found[line] for line in READING if found[line][0] != 0 or not found[line][1]} == {}
    for line in WRITING:
        code, out, err = found[line]
        named = next(word for word in ("db.t", "db.u", "other") if word in line)
        assert code == 1 and named in out + err and "the right to" in out + err, (line, out, err)
    assert all_files(readable) == before
