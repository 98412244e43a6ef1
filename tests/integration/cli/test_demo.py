"""The whole demo, as a stranger runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.cli.main import main
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import rollback

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run_demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hms_iceberg.cli.main", "demo", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def test_the_demo_runs_to_its_end_and_what_it_keeps_can_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "kept"

    result = run_demo("--keep", str(folder))

    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "nyc.flights is an Iceberg table" in result.stdout
    assert "336,776 rows) in 12 partitions" in result.stdout
    assert "Every row is the same as before the migration." in result.stdout
    assert result.stdout.count("336,776") >= 4  # in Hive, migrated, and twice by time travel
    assert "336,779" in result.stdout
    assert re.search(r"AA +1 +7 *\n +B6 +601 +0 *\n", result.stdout)
    assert re.search(r"Done in \d+ s\.", result.stdout)
    with (
        EmbeddedMetastore(folder / "metastore", folder / "warehouse") as metastore,
        load_catalog("kept", type="hive", uri=metastore.uri) as catalog,
    ):
        assert catalog.load_table("nyc.flights").scan().to_arrow().num_rows == 336_780
        assert rollback(catalog, "nyc.flights", discard_changes=True).discarded_snapshots == 2
        assert catalog.list_tables("nyc") == []


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()

    assert main(["demo", "--keep", str(tmp_path)]) == 1

    assert "is not empty" in capsys.readouterr().err
