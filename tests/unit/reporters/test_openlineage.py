"""A run of a job tells OpenLineage what it read and wrote, and how it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.reporters.openlineage import LineageRun
from tests.unit.test_reports import SCHEMA, rows

client_module = pytest.importorskip("openlineage.client", reason="needs pip install openlineage-python")
HIVE = "hive://metastore:9083"


@pytest.fixture
def client(tmp_path: Path) -> Any:
    from openlineage.client.transport.file import FileConfig, FileTransport

    return client_module.OpenLineageClient(
        transport=FileTransport(FileConfig(log_file_path=str(tmp_path / "events"), append=True))
    )


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Any, Any]:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "w"))
    catalog.create_namespace("web")
    raw, clean = (catalog.create_table(f"web.{name}", SCHEMA) for name in ("raw", "clean"))
    raw.append(rows(1, 2))
    return raw, clean


def events(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]


def test_inputs_and_outputs_have_their_columns_and_versions(tmp_path: Path, client: Any, tables: Any) -> None:
    raw, clean = tables
    with LineageRun("nightly", HIVE, "team", client) as run:
        clean.append(raw.scan("id = 1").to_arrow())
    raw.append(rows(3))  # after the run

    told = events(tmp_path)
    assert [each["eventType"] for each in told] == ["START", "RUNNING", "COMPLETE"]
    assert {each["run"]["runId"] for each in told} == {run.run_id}
    assert told[0]["job"]["name"] == "nightly" and told[0]["job"]["namespace"] == "team"
    [read], [written] = told[-1]["inputs"], told[-1]["outputs"]
    assert [(each["namespace"], each["name"]) for each in (read, written)] == [(HIVE, "web.raw"), (HIVE, "web.clean")]
    columns = [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}]
    for each in (read, written):
        fields = each["facets"]["schema"]["fields"]
        assert [{key: field[key] for key in ("name", "type")} for field in fields] == columns
    assert read["facets"]["version"]["datasetVersion"] == str(raw.history()[0].snapshot_id)
    assert written["facets"]["version"]["datasetVersion"] == str(clean.current_snapshot().snapshot_id)
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert written["outputFacets"]["outputStatistics"]["fileCount"] == 1


def test_a_run_that_fails_says_so_and_the_error_goes_on(tmp_path: Path, client: Any, tables: Any) -> None:
    with pytest.raises(ZeroDivisionError), LineageRun("nightly", HIVE, client=client):
        raise ZeroDivisionError("by nothing")
    started, failed = events(tmp_path)
    assert (started["eventType"], failed["eventType"]) == ("START", "FAIL")
    assert failed["run"]["facets"]["errorMessage"]["message"] == "by nothing"


def test_a_server_that_takes_no_events_harms_no_job(tables: Any, caplog: pytest.LogCaptureFixture) -> None:
    from openlineage.client.transport.file import FileConfig, FileTransport

    nowhere = client_module.OpenLineageClient(transport=FileTransport(FileConfig(log_file_path="/nosuch/a/b/events")))
    raw, _ = tables
    with LineageRun("nightly", HIVE, client=nowhere):
        raw.append(rows(3))
    assert raw.scan().count() == 3
    assert sum("An event of lineage was not taken" in record.getMessage() for record in caplog.records) == 3
