"""Geometries and geographies written by Apache Iceberg (Java) 1.12 on Spark 4.1, whose files have no bounds of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.shape_columns import extents
from hms_iceberg.spec.data_types import GeographyType, GeometryType
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.table import Table

GOLDEN = Path("/tmp/hms_iceberg_golden/shapes")


def table_of(case: str) -> Table:
    return FileSystemTables().load(str(GOLDEN / case))


def hexed(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()


@pytest.mark.parametrize("case", ["written", "deleted"])
def test_shapes_are_those_that_spark_reads(case: str) -> None:
    table = table_of(case)
    wanted = json.loads((GOLDEN / case / "rows.json").read_text())
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    found = [
        [row["id"], *(hexed(each) for each in (row["geom"], row["metres"], row["geog"], (row["s"] or {}).get("g")))]
        for row in rows
    ]
    assert found == wanted
    kinds = [field.field_type for field in table.schema().fields[1:4]]
    assert kinds == [GeometryType(), GeometryType("EPSG:3857"), GeographyType()]


def test_a_box_takes_rows_of_files_without_bounds() -> None:
    rows = table_of("written").scan(row_filter="intersects_box(geom, 6, 6, 20, 20)").to_arrow()
    everything = table_of("written").scan().to_arrow()
    boxes = extents(everything["geom"].combine_chunks().storage)
    meets = [
        high[0] >= 6 and low[0] <= 20 and high[1] >= 6 and low[1] <= 20
        for low, high in zip(boxes.low, boxes.high, strict=True)
    ]
    assert sorted(rows["id"].to_pylist()) == sorted(everything["id"].filter(pa.array(meets)).to_pylist())
