"""Rows of metadata tables on their way to Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import MissingFileError
from hms_iceberg.spark.read_questions import InspectRows
from hms_iceberg.spark.reading.metadata_tables import inspection_rows


@pytest.mark.parametrize("kind", ["files", "all_files"])
def test_rows_that_cannot_be_read_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    catalog = load_catalog("folders", type="hadoop", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for path in (tmp_path / "warehouse").rglob("*-m*.avro"):
        path.unlink()
    asked = InspectRows("db.t", table.metadata_location, kind, ["file_path"], snapshot_id=snapshot.snapshot_id)
    with pytest.raises(MissingFileError):
        inspection_rows(table.metadata, ArrowStorage(), asked)
    assert list(temporary.iterdir()) == []
