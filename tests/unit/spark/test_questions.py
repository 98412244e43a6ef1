"""Questions as the bridge's classes write them, without a JVM."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.spark.bridge_service import BridgeService
from hms_iceberg.spark.questions import QUESTIONS
from hms_iceberg.spark.reading.descriptions import UNKNOWN_SIZE
from hms_iceberg.table import FileSystemTables
from hms_iceberg.table.table import Table

Ask = Callable[..., dict[str, Any]]
VERSION = {"version": None, "as_of_micros": None, "lacking_types": []}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = FileSystemTables().create(pa.schema([("id", pa.int64())]), str(tmp_path / "t"))
    made.append(pa.table({"id": [1, 2]}))
    made.append(pa.table({"id": [3]}))
    return made


@pytest.fixture
def ask(table: Table) -> Ask:
    service = BridgeService()

    def header(call: str, **more: Any) -> dict[str, Any]:
        question = {"call": call, "name": "t", "metadata_location": table.metadata_location, **more}
        answer = service.answer(json.dumps(question).encode())
        found: dict[str, Any] = json.loads(answer[4 : 4 + int.from_bytes(answer[:4], "little")])
        return found

    return header


def test_a_read_is_described_and_planned(ask: Ask, table: Table) -> None:
    loaded = ask("load", **VERSION, options={"branch": "main"}, wap_branch="nowhere")
    assert loaded["snapshot_id"] == table.metadata.current_snapshot_id
    chosen = {name: loaded[name] for name in ("snapshot_id", "start_snapshot_id", "schema_id")}
    assert ask("plan", **chosen, lacking_types=[], deleted_column=False)["files"] == 2
    equal = {"op": "eq", "column": ["id"], "value": 3}
    assert "error" not in ask("plan", **chosen, lacking_types=[], deleted_column=False, filter=equal, aggregates=[])
    assert "error" not in ask("worker-command", **chosen, columns=["id"], deleted_column=False)


def test_a_snapshot_whose_summary_has_no_totals_is_of_unknown_size(ask: Ask, table: Table, tmp_path: Path) -> None:
    metadata = table.metadata.model_dump()
    for snapshot in metadata["snapshots"]:
        snapshot["summary"] = {"operation": "append"}
    (location := tmp_path / "v1.metadata.json").write_text(json.dumps(metadata))
    loaded = ask("load", **VERSION, metadata_location=str(location), options={})
    assert (loaded["size_in_bytes"], loaded["row_count"]) == (UNKNOWN_SIZE, None)


def test_metadata_tables_and_changes_are_described(ask: Ask, table: Table) -> None:
    for kind in ("files", "SNAPSHOTS", "position_deletes"):
        found = ask("inspect", **VERSION, options={}, kind=kind)
        rows = ask("inspect-rows", **VERSION, kind=kind, snapshot_id=found["snapshot_id"], columns=[])
        assert rows["path"] is None, kind
    assert ask("changes", **VERSION, options={})["schema"]["fields"][0]["name"] == "id"
    assert "error" not in ask("changed-rows", **VERSION, options={}, columns=["id"], schema_id=0)


def test_a_stream_is_planned_from_offset_to_offset(ask: Ask, table: Table) -> None:
    assert ask("stream-check", snapshot_id=None, options={"path": "t"}) == {}
    start = ask("stream-first", options={})["offset"]
    offset = ask("stream-latest", start=start, everything=False, options={})["offset"]
    batch = {"start": None, "end": offset, "options": {}}
    assert ask("plan", snapshot_id=None, start_snapshot_id=None, schema_id=0, batch=batch)["files"] == 2


def test_a_table_is_found_by_its_path(ask: Ask, table: Table) -> None:
    uuid, changed = table.metadata.table_uuid, table.metadata.last_updated_ms
    name = ask("find", path=table.location())["metadata_location"]
    assert name == f"{table.metadata_location}#{uuid}@{changed}" and "error" not in ask("load", **VERSION, options={})
    replaced = name.replace(str(uuid), "another")
    assert "not the one that the query began with" in str(
        ask("load", **VERSION, metadata_location=replaced, options={})
    )


def test_rows_are_deleted_by_metadata_alone_or_not_at_all(ask: Ask, table: Table) -> None:
    wanted = {"op": "eq", "column": ["id"], "value": 3}
    asked = {
        "path": table.location(),
        "branch": None,
        "engine": {"engine-name": "spark"},
        "session": {},
        "case_sensitive": False,
        "has_functions": True,
    }
    assert ask("can-delete", **asked, filter=wanted) == {"possible": True}
    assert ask("delete-where", **asked, filter=wanted) == {}
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert table.metadata.snapshots[-1].summary["engine-name"] == "spark"


def test_a_question_of_another_layout_says_what_is_missing(ask: Ask) -> None:
    assert "schema_id" in ask("plan", snapshot_id=None)["error"]["message"]


def test_the_bridge_s_classes_ask_what_there_is_an_answer_to_and_nothing_else() -> None:
    rooms = resources.files("hms_iceberg.spark").joinpath("bridge").iterdir()
    text = "".join(file.read_text("utf-8") for room in rooms for file in room.iterdir() if file.name.endswith(".java"))
    asked = set(re.findall(r'uestion\("([a-z-]+)"', text)) | set(re.findall(r'put\("call", "([a-z-]+)"\)', text))
    assert len(asked) > 20
    assert asked <= set(QUESTIONS)
    assert [name for name in QUESTIONS if f'"{name}"' not in text] == []


def test_plans_wait_for_no_commit_and_few_are_made_at_once(
    table: Table, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, running, most = threading.Event(), [0], [0]

    def waits(*_: Any) -> dict[str, Any]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        assert may_end.wait(60)
        running[0] -= 1
        return {}

    plan = QUESTIONS["plan"]
    monkeypatch.setitem(QUESTIONS, "alter-table", replace(QUESTIONS["alter-table"], answer=waits))
    with ThreadPoolExecutor(60) as pool:
        commits = [pool.submit(ask, "alter-table", changes=[]) for _ in range(40)]
        while running[0] < 40:
            time.sleep(0.01)
        loaded = ask("load", **VERSION, options={})
        assert ask("plan", snapshot_id=loaded["snapshot_id"], schema_id=loaded["schema_id"])["files"] == 2
        may_end.set()
        assert [each.result() for each in commits] == [{}] * 40
        may_end.clear()
        running[0] = most[0] = 0
        monkeypatch.setitem(QUESTIONS, "plan", replace(plan, answer=waits))
        plans = [pool.submit(ask, "plan", schema_id=0) for _ in range(12)]
        while running[0] < 4:
            time.sleep(0.01)
        time.sleep(0.3)
        assert running[0] == 4
        may_end.set()
        assert [each.result() for each in plans] == [{}] * 12
