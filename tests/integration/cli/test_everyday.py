"""The everyday commands on the real metastore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
