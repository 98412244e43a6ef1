"""hms-iceberg upgrade: the format version of a table, and a rehearsal of it."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.care import rehearsal
from hms_iceberg.cli.care.rehearsal import AFTER_DELETE, TODAY, UPGRADED, Reading
from hms_iceberg.table import Table
from tests.unit.cli.conftest import Run

READERS = (rehearsal.ENGINE_NAMES["python"], rehearsal.ENGINE_NAMES["pyiceberg"])
VERSIONS = (TODAY, UPGRADED, AFTER_DELETE)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.fixture
def two_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark, which takes long to start, and DuckDB, which may lack its extension."""
    names = {key: rehearsal.ENGINE_NAMES[key] for key in ("python", "pyiceberg", "java")}
    monkeypatch.setattr(rehearsal, "ENGINE_NAMES", names)


@pytest.mark.usefixtures("two_engines")
def test_a_rehearsal_reads_all_rows_by_each_engine_and_changes_nothing(lake: Catalog, run: Run, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int64()),
            "x": [0.5, float("nan"), None],
            "d": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
            "b": [b"", b"\xff", None],
            "t": pa.array([datetime(1969, 12, 31, 23, tzinfo=timezone.utc), None, None], pa.timestamp("us", "UTC")),
            "u": pa.array([uuid.UUID(int=1).bytes, None, uuid.UUID(int=2**128 - 1).bytes], pa.uuid()),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "l": pa.array([[{"a": "z"}, {"a": None}], [], None], pa.list_(pa.struct([("a", pa.string())]))),
        }
    )
    table = lake.create_table("db.rows", rows.schema, properties={"write.delete.mode": "merge-on-read"})
    table.append(rows)
    table.delete("n = 3")
    before = files_of(tmp_path)
    said = run("upgrade", "db.rows", "--to", "v3", "--rehearse", "--output", "json")
    assert said.code == 0, said
    told = said.json["readers"]
    assert [each["missing"] for each in told.values()] == [None, None, "give its runtime with --jar"]
    for engine in ("python", "pyiceberg"):
        reading = told[rehearsal.ENGINE_NAMES[engine]]
        assert reading["rows"] == {TODAY: 2, UPGRADED: 2, AFTER_DELETE: 1}
        assert reading["today"] is None and reading["breaks"] == {}
    assert files_of(tmp_path) == before


@pytest.mark.usefixtures("two_engines")
def test_version_4_is_rehearsed_as_its_draft_stands_and_never_made(
    table: Table, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(tmp_path)
    said = run("upgrade", "db.t", "--to", "v4", "--rehearse")
    assert said.code == 1 and "1 reader would break" in said.out
    ours, foreign = (next(line for line in said.out.splitlines() if line.startswith(name)) for name in READERS)
    assert "reads it" in ours and "upgraded 3 rows" in ours
    assert "BREAKS" in foreign
    assert files_of(tmp_path) == before
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([2], pa.int64())}), ["id"])
    monkeypatch.setattr(rehearsal, "ENGINE_NAMES", {"python": rehearsal.ENGINE_NAMES["python"]})
    said = run("upgrade", "db.t", "--to", "v4", "--rehearse")
    assert "upgraded 2 rows" in said.out
    assert "1 equality deletes" in said.out and "hms-iceberg convert-equality-deletes db.t" in said.out


@pytest.mark.usefixtures("two_engines")
def test_a_reader_that_breaks_is_told_and_fails_the_command(
    table: Table, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = rehearsal._answer

    def without_vectors(question: Any, seconds: float) -> Any:
        """PyIceberg as if it had never heard of deletion vectors: it reads the rows as they were before."""
        if question["engine"] == "pyiceberg":
            question = {**question, "versions": {**question["versions"], AFTER_DELETE: question["versions"][UPGRADED]}}
        return asked(question, seconds)

    monkeypatch.setattr(rehearsal, "_answer", without_vectors)
    said = run("upgrade", "db.t", "--to", "v3", "--rehearse")
    assert said.code == 1
    assert "after a delete: 3 rows instead of 2" in said.out and "1 reader would break" in said.out
    assert table.refresh().format_version == 2


def test_what_readers_find_is_judged_by_what_they_find_today() -> None:
    def found(rows: int, least: str = "1") -> dict[str, Any]:
        return {"rows": rows, "checksum": rows, "columns": {"n": {"least": least}}}

    ours = {TODAY: found(3), UPGRADED: found(3), AFTER_DELETE: found(2)}

    def judged(*told: dict[str, Any]) -> Reading:
        return rehearsal._judged("duckdb", dict(zip(VERSIONS, told, strict=True)), ours)

    assert judged(*ours.values()).breaks == {}
    broken = {"error": "NotImplemented: version 3"}
    assert judged(found(3), broken, broken).breaks == {UPGRADED: broken["error"], AFTER_DELETE: broken["error"]}
    assert judged(broken, broken, broken) == Reading("duckdb", today=broken["error"])
    other = judged(found(3, "2"), found(3, "2"), found(2, "2"))
    assert other.breaks == {} and other.today == "other values in n"
    assert judged(found(3, "2"), found(3, "1"), found(2, "1")).breaks == {UPGRADED: "other values in n"}
    assert judged(found(3), found(3), found(2, "0")).breaks == {AFTER_DELETE: "other values in n"}


def test_a_table_is_upgraded_once(table: Table, run: Run) -> None:
    assert "has format version 3 now; it had 2" in run("upgrade", "db.t", "--to", "v3").out
    assert table.refresh().format_version == 3 and table.scan().count() == 3
    for version in ("v2", "v3"):
        assert "has format version 3 already" in run("upgrade", "db.t", "--to", version).out
    refused = run("upgrade", "db.t", "--to", "v4")
    assert refused.code == 1 and "format version 4" in refused.err and "db.t" in refused.err
    assert (
        "no table" in run("upgrade", "db.x", "--to", "v3").err.lower()
        or "db.t" in run("upgrade", "db.x", "--to", "v3").err
    )
