"""Scans and commits are reported to the log and to listeners, whatever a listener does."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.errors import CommitConflictError, ConfigurationError
from hms_iceberg.reports import CommitReport, Report, ScanReport, listen

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])
HEARD: list[Report] = []


def hear(report: Report) -> None:
    HEARD.append(report)


class Hearing:
    """A listener that is a class."""

    def __call__(self, report: Report) -> None:
        HEARD.append(report)


@pytest.fixture
def table(tmp_path: Path) -> Any:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("web")
    return catalog.create_table("web.t", SCHEMA)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": ["Bonn"] * len(ids)})


def test_commits_and_scans_are_told_with_what_they_did(table: Any) -> None:
    heard: list[Report] = []
    with listen(heard.append):
        table.append(rows(1, 2))
        table.append(rows(3))
        assert table.scan("id = 3").to_arrow().num_rows == 1
        table.set_properties({"a": "b"})
    table.append(rows(4))  # nobody listens any more

    first, second, scan, properties = heard
    assert isinstance(first, CommitReport) and isinstance(second, CommitReport)
    assert (first.table, first.outcome, first.attempts, first.operation) == ("web.t", "made", 1, "append")
    assert first.table_uuid == str(table.metadata.table_uuid)
    assert [each.summary["added-records"] for each in (first, second)] == ["2", "1"]
    newest = table.history()[1].snapshot_id
    assert (second.snapshot_id, second.schema.find_field("city").field_id) == (newest, 2)
    assert isinstance(scan, ScanReport)
    assert (scan.table, scan.snapshot_id) == ("web.t", newest)
    assert (scan.metrics.files_total, scan.metrics.files_kept, scan.metrics.manifests_kept) == (2, 1, 2)
    assert scan.bytes > 0 and "id" in str(scan.row_filter)
    assert isinstance(properties, CommitReport)
    assert (properties.outcome, properties.snapshot_id, properties.operation) == ("made", None, None)


def test_commits_that_were_not_made_are_told_with_the_reason(table: Any) -> None:
    heard: list[Report] = []
    table.append(rows(1, 2))
    other = table.catalog.load_table("web.t")
    with listen(heard.append):
        late = table.transaction()
        late.delete("id = 1")
        other.overwrite(rows(5))
        with pytest.raises(CommitConflictError):
            late.commit_transaction()
    outcomes = [(each.outcome, each.error.partition(":")[0]) for each in heard if isinstance(each, CommitReport)]
    assert outcomes == [("made", ""), ("conflict", "CommitConflictError")]


def test_a_listener_that_fails_harms_nothing(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Report] = []

    def fail(report: Report) -> None:
        raise ZeroDivisionError("of a reporter")

    with caplog.at_level(logging.INFO, "hms_iceberg.reports"), listen(fail), listen(heard.append):
        table.append(rows(1))
        assert table.scan().count() == 1
    assert len(heard) == 2
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == ["INFO", "WARNING"] * 2
    assert told[0][1].startswith("Committed web.t: ") and "of a reporter" in told[1][1]
    assert told[2][1].startswith("Planned web.t at ") and ": 1 of 1 files, 0 delete files, 1 of 1" in told[2][1]


def test_a_catalog_names_a_listener_which_hears_a_report_once(tmp_path: Path) -> None:
    for name in (f"{__name__}:hear", f"{__name__}:Hearing"):
        HEARD.clear()
        for _ in range(2):
            catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path), **{"metrics-reporter-impl": name})
        catalog.create_namespace(f"n{len(name)}")
        catalog.create_table(f"n{len(name)}.t", SCHEMA)
        assert [type(each) for each in HEARD][-1] is CommitReport
    assert len(HEARD) == 2, "of the function and of the class, each once"
    with pytest.raises(ConfigurationError, match=r"'metrics-reporter-impl' is 'nosuch:thing'.*module:function"):
        load_catalog("files", type="hadoop", warehouse=str(tmp_path), **{"metrics-reporter-impl": "nosuch:thing"})
