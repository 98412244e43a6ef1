"""Metadata files written by Apache Iceberg (Java), read and written again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json, metadata_to_json
from hms_iceberg.spec.schema_json import schema_to_json

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
FILES = sorted(GOLDEN.glob("*/metadata/*metadata.json"))


def raw_json(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def normalized(value: Any, key: str = "") -> Any:
    """JSON in which the digits of binary defaults have one case."""
    if isinstance(value, dict):
        return {name: normalized(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [normalized(each) for each in value]
    return value.lower() if key in ("initial-default", "write-default") and isinstance(value, str) else value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-3])
def test_metadata_written_by_java_is_written_back_without_loss(path):
    metadata = metadata_from_json(path.read_bytes(), str(path))
    written = metadata_to_json(metadata)
    assert normalized(json.loads(written)) == normalized(raw_json(path))
    assert metadata_from_json(written) == metadata


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-3])
def test_metadata_written_by_java_is_understood(path):
    expected = json.loads((path.parent.parent / "expected.json").read_text())
    if path.parent.parent / expected["metadata_file"] != path:
        pytest.skip("not the final metadata file of the table")
    metadata = metadata_from_json(path.read_bytes(), str(path))
    current = metadata.current_snapshot()
    assert metadata.format_version == expected["format_version"]
    assert normalized(schema_to_json(metadata.schema())) == normalized(expected["schema"])
    assert (current and current.snapshot_id) == (expected["current_snapshot_id"] or None)
    assert [
        {
            "snapshot_id": each.snapshot_id,
            "parent_id": each.parent_snapshot_id,
            "sequence_number": each.sequence_number,
            "timestamp_ms": each.timestamp_ms,
            "operation": each.operation,
            "schema_id": each.schema_id,
            "first_row_id": each.first_row_id,
        }
        for each in metadata.snapshots
    ] == expected["snapshots"]
    refs = {name: (str(ref.snapshot_ref_type), ref.snapshot_id) for name, ref in metadata.refs.items()}
    assert refs == {name: (ref["type"], ref["snapshot_id"]) for name, ref in expected["refs"].items()}
    for read in expected["reads"]:
        if read.get("as_of_timestamp_ms") is not None:
            found = metadata.snapshot_as_of(read["as_of_timestamp_ms"])
            assert found is not None
            schema = metadata.schema_for_snapshot(found)
            assert {field_id for _, field_id in read["schema"]} <= set(schema.index_by_id)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-3])
def test_definitions_made_by_java_make_a_new_table(path):
    """Schemas, specs and orders of Java pass the rules for new tables, and keep their shape with fresh ids."""
    metadata = metadata_from_json(path.read_bytes(), str(path))
    schema, spec, order = metadata.schema(), metadata.spec(), metadata.sort_order()
    fields = [field for field in spec.fields if schema.has_field(field.source_id)]
    if len(fields) != len(spec.fields):
        pytest.skip("the spec has a field of a column that was dropped")
    fresh = new_table_metadata(schema, spec, order, "file:/tmp/new", format_version=metadata.format_version)
    assert sorted(fresh.schema().column_names) == sorted(schema.column_names)
    assert [(f.name, f.transform) for f in fresh.spec().fields] == [(f.name, f.transform) for f in fields]
    assert [f.transform for f in fresh.sort_order().fields] == [f.transform for f in order.fields]
