"""The everyday commands on the real metastore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.hms.embedded import EmbeddedMetastore


@pytest.fixture
def told(metastore: EmbeddedMetastore, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the metastore; what it tells as JSON."""

    def run(*words: object) -> Any:
        capsys.readouterr()
        before = ["--uri", metastore.uri, "-p", f"warehouse={metastore.warehouse}", "--output", "json"]
        assert main([*before, *map(str, words)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_a_table_is_made_filled_read_renamed_and_dropped(told: Any, catalog: Catalog, tmp_path: Path) -> None:
    told("create", "namespace", "cli_web")
    told("properties", "set", "namespace", "cli_web", "owner", "ops")
    assert told("properties", "get", "namespace", "cli_web", "owner") == "ops"
    told("properties", "remove", "namespace", "cli_web", "owner")
    assert "owner" not in told("describe", "cli_web")
    told("create", "table", "cli_web.visits", "--column", "id:long!", "--column", "page:string")
    rows = tmp_path / "rows.csv"
    rows.write_text("id,page\n1,/\n2,\n")

    first = told("append", "cli_web.visits", rows)["snapshot_id"]
    told("tag", "create", "cli_web.visits", "first")
    told("append", "cli_web.visits", rows)
    assert told("scan", "cli_web.visits", "--tag", "first") == [{"id": 1, "page": "/"}, {"id": 2, "page": None}]
    assert told("diff", "cli_web.visits", "first")["rows"]["INSERT"] == 2
    assert told("rollback", "cli_web.visits", "first")["after"] == first
    assert told("check", "cli_web.*")[0]["findings"] == []

    assert told("locks", "list", "cli_web") == []
    told("rename", "cli_web.visits", "cli_web.views")
    assert told("list", "cli_web") == ["cli_web.views"]
    assert catalog.load_table("cli_web.views").scan().count() == 2
    told("drop", "table", "cli_web.views", "--purge")
    told("drop", "namespace", "cli_web")
    assert "cli_web" not in told("list")


def test_every_command_that_cares_for_one_table_or_shows_it_runs_on_the_metastore(
    told: Any, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    name = f"{namespace}.t"
    told("create", "table", name, "--column", "id:long", "--column", "day:string", "--partition-by", "day")
    table = catalog.load_table(name)
    for first in (1, 3):
        table.append(pa.table({"id": [first, first + 1], "day": ["mon", None]}))
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": [1], "day": ["mon"]}), columns=["id", "day"])

    assert told("convert-equality-deletes", name)["added_delete_files_count"] == 1
    assert told("rewrite-position-deletes", name, "-o", "rewrite-all=true")["rewritten_delete_files_count"] == 1
    assert told("rewrite-manifests", name)["added_manifests_count"] > 0
    assert told("rewrite-data-files", name, "-o", "rewrite-all=true")["added_data_files_count"] == 2
    assert told("remove-dangling-deletes", name)["removed_delete_files"] == []
    for command in ("compute-table-stats", "compute-partition-stats"):
        assert told(command, name)["statistics_file"].startswith(told("location", name))
    assert len(told("list-refs", name)) == 1 and len(told("history", name)) > 4
    assert told("uuid", name) == {"uuid": str(table.metadata.table_uuid)}
    prefixes = ("--source-prefix", told("location", name), "--target-prefix", tmp_path)
    assert told("rewrite-table-path", name, *prefixes)["latest_version"].endswith(".metadata.json")
    assert told("remove-orphan-files", name, "--dry-run")["deleted"] == 0
    assert told("expire-snapshots", name, "--older-than", "2100-01-01")["deleted"] > 4
    metadata = catalog.load_table(name).metadata_location
    told("drop", "table", name)
    told("register", name, metadata)
    assert sorted(row["id"] for row in told("scan", name, "--columns", "id")) == [2, 3, 4]
