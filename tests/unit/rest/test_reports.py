"""A REST catalog gets reports of scans and commits of its tables, in the form of the protocol."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.reports import Report, listen
from hms_iceberg.rest_client.reports import commit_to_json, scan_to_json
from tests.support.rest_server import served
from tests.unit.test_reports import SCHEMA, rows


class Taken(logging.Handler):
    """What the server says of reports that it took."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.three = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Metrics of"):
            self.told.append(record.getMessage())
            if len(self.told) == 3:
                self.three.set()


@pytest.fixture
def taken() -> Any:
    log, handler = logging.getLogger("hms_iceberg.rest.catalog.tables"), Taken()
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


def test_the_catalog_is_told_of_its_tables_and_not_of_others(tmp_path: Path, taken: Taken) -> None:
    behind = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "w"))
    other = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "o"))
    for each in (behind, other):
        each.create_namespace("web")
    stranger = other.create_table("web.t", SCHEMA)
    behind.create_table("web.t", SCHEMA)
    with served(behind) as server:
        quiet = {"rest-metrics-reporting-enabled": "false"}
        with load_catalog("quiet", type="rest", uri=server.url, **quiet) as catalog:
            catalog.load_table("web.t").append(rows(1))
        assert not taken.told
        with load_catalog("client", type="rest", uri=server.url) as catalog:
            table = catalog.load_table("web.t")
            stranger.append(rows(7))
            table.append(rows(2))  # the server's own part of it, in this process, is heard as well
            assert table.scan("id = 2").to_arrow().num_rows == 1
            assert taken.three.wait(20)
    assert {each.partition(": ")[0] for each in taken.told} == {"Metrics of web.t"}
    assert {each.partition(": ")[2] for each in taken.told} == {"'commit-report'", "'scan-report'"}


def test_bodies_have_the_names_of_the_protocol(tmp_path: Path) -> None:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("web")
    table = catalog.create_table("web.t", SCHEMA)
    heard: list[Report] = []
    with listen(heard.append):
        table.append(rows(1, 2))
        table.scan("id = 1").to_arrow()
        table.set_properties({"a": "b"})
    commit, scan, properties = heard
    told = commit_to_json(commit)  # type: ignore[arg-type]
    assert told is not None and (told["report-type"], told["operation"]) == ("commit-report", "append")
    assert told["metrics"]["added-records"] == {"unit": "count", "value": 2}
    assert told["metrics"]["added-files-size-bytes"]["unit"] == "bytes"
    assert told["metrics"]["total-duration"]["time-unit"] == "nanoseconds"
    told = scan_to_json(scan)  # type: ignore[arg-type]
    assert told is not None and told["filter"] == {"type": "eq", "term": "id", "value": 1}
    assert told["metrics"]["result-data-files"] == {"unit": "count", "value": 1}
    assert told["projected-field-names"] == ["id", "city"] and told["projected-field-ids"] == [1, 2]
    assert commit_to_json(properties) is None  # type: ignore[arg-type]
