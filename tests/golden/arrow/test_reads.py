"""Rows of tables written by Apache Iceberg (Java): every read of every golden table, row for row."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.reading.read import scan_to_batches
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import FILE, LAST_UPDATED_SEQUENCE_NUMBER, POSITION, ROW_ID
from hms_iceberg.spec.schema import Schema
from tests.support.golden_rows import comparable, encoded_rows, expected_rows, has_repeated_row_ids, is_null_below_noon

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/expected.json"))


@cache
def expected(case: str) -> dict[str, Any]:
    return json.loads((GOLDEN / case / "expected.json").read_text())


@cache
def metadata_of(case: str) -> TableMetadata:
    location = GOLDEN / case / expected(case)["metadata_file"]
    return metadata_from_json(location.read_bytes(), str(location))


def snapshot_and_schema(metadata: TableMetadata, read: dict[str, Any]) -> tuple[int | None, Schema]:
    """What a read reads: a branch with the table's schema, everything else in the past with the snapshot's."""
    if read.get("ref"):
        ref = metadata.refs[read["ref"]]
        snapshot = metadata.snapshot_by_id(ref.snapshot_id)
        if ref.is_branch:
            return ref.snapshot_id, metadata.schema()
    elif read.get("as_of_timestamp_ms"):
        snapshot = metadata.snapshot_as_of(read["as_of_timestamp_ms"])
    elif read.get("snapshot_id"):
        snapshot = metadata.snapshot_by_id(read["snapshot_id"])
    else:
        return None, metadata.schema()
    assert snapshot is not None
    return snapshot.snapshot_id, metadata.schema_for_snapshot(snapshot)


def rows_of(case: str, read: dict[str, Any]) -> tuple[list[str], Schema]:
    metadata = metadata_of(case)
    snapshot_id, schema = snapshot_and_schema(metadata, read)
    row_filter = parse(read["filter"]) if read.get("filter") else AlwaysTrue()
    projected = schema.select(*read["columns"]) if read.get("columns") else schema
    if read.get("row_lineage"):
        projected = Schema(*projected.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    storage = ArrowStorage()
    plan = plan_scan(ScanRequest(metadata, snapshot_id, row_filter, schema=schema), storage)
    batches = list(scan_to_batches(plan, projected, metadata, storage))
    return encoded_rows(pa.Table.from_batches(batches, to_arrow(projected)), projected), projected


@pytest.mark.parametrize("case", CASES)
def test_every_read_gives_the_rows_that_java_wrote(case: str) -> None:
    wrong = []
    for read in expected(case)["reads"]:
        rows, schema = rows_of(case, read)
        if "schema" in read and [[field.name, field.field_id] for field in schema.fields] != read["schema"]:
            wrong.append(f"{read['name']}: columns {[field.name for field in schema.fields]}, not {read['schema']}")
        wanted = comparable(case, read, expected_rows(read["rows"]))
        if comparable(case, read, rows) != wanted:
            extra, missing = sorted(set(rows) - set(wanted))[:3], sorted(set(wanted) - set(rows))[:3]
            wrong.append(f"{read['name']}: {len(rows)} rows, expected {len(wanted)}; extra {extra}, missing {missing}")
    assert wrong == []


def test_java_is_judged_wrong_in_ten_reads_and_in_no_other() -> None:
    reads = [(case, read) for case in CASES for read in expected(case)["reads"]]
    with_nulls = [case for case, read in reads if is_null_below_noon(case, read)]
    assert with_nulls == ["c03_primitives_time", "c17_primitives_avro", "c17_primitives_orc"]
    repeated = sorted(read["name"] for case, read in reads if has_repeated_row_ids(case, read))
    states = ("base", "del1", "del2", "del3", "reinsert", "upd")
    assert repeated == ["lineage", *(f"lineage_{state}" for state in states)]


def test_row_ids_of_avro_files_are_those_that_are_stored_or_count_from_the_first_of_the_file() -> None:
    """What Java gives here repeats itself, and is not compared: the files are read again, without this package."""
    case, checked = "c17_dv_avro", 0
    metadata, storage = metadata_of(case), ArrowStorage()
    projected = Schema(FILE, POSITION, ROW_ID)
    for read in expected(case)["reads"]:
        if not has_repeated_row_ids(case, read):
            continue
        snapshot_id, schema = snapshot_and_schema(metadata, read)
        plan = plan_scan(ScanRequest(metadata, snapshot_id, schema=schema), storage)
        stored: dict[tuple[str, int], int] = {}
        for task in plan.tasks():
            with open(task.file.file_path.removeprefix("file:"), "rb") as file:
                for position, record in enumerate(fastavro.reader(file)):
                    own = record.get("_row_id")
                    first = task.file.first_row_id
                    stored[task.file.file_path, position] = (
                        own if own is not None or first is None else first + position
                    )
        rows = pa.Table.from_batches(
            scan_to_batches(plan, projected, metadata, storage), to_arrow(projected)
        ).to_pylist()
        assert rows
        assert [row["_row_id"] for row in rows] == [stored[row["_file"], row["_pos"]] for row in rows]
        checked += len(rows)
    assert checked


def test_row_ids_of_avro_files_are_unique() -> None:
    # Later snapshots hold copies of the repeated ids, which Java stored when it updated rows.
    (read,) = (read for read in expected("c17_dv_avro")["reads"] if read["name"] == "lineage_base")
    rows, _ = rows_of("c17_dv_avro", read)
    assert sorted(json.loads(row)[-2] for row in rows) == list(range(30))


def test_a_null_time_is_not_below_noon() -> None:
    for case in CASES:
        for read in expected(case)["reads"]:
            if is_null_below_noon(case, read):
                rows, _ = rows_of(case, read)
                assert all(json.loads(row)[-1] is not None for row in rows)
